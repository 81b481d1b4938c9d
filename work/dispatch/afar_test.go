package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/away"
	"netsky/work/task"
	"netsky/work/tree"
)

const afar agent.ID = "agent1@build1"

// startAfar gives a task to an agent on another host, whose work is here in a repository, and has it answered.
func (r *rig) startAfar(repo testworld.Repo) string {
	r.Helper()
	testworld.Must(r, r.bus.Link("build1"))
	testworld.Must(r, tree.Away{Dir: "/src", Branch: "refs/heads/netsky/agent1"}.Save(r.home, tree.Worktree{
		Agent: afar, Repo: repo.Dir + "/.git", Main: repo.Dir, Branch: away.Ref(afar), Base: "refs/heads/main", From: repo.Git("rev-parse", "HEAD"),
	}))
	id := r.add("one")
	w := r.wish(afar)
	w.Reach = func(context.Context, agent.ID, string, bool) error { return nil }
	testworld.Got(r.crew(agent.Owner).Start(r.Context(), id, w))(r)
	testworld.Contains(r, r.inbox(afar, envelope.KindBrief)[0].Text, "What you commit on your branch netsky/agent1 is fetched from there")
	return id
}

func (r *rig) answerAfar(id string) {
	r.Helper()
	_, _, err := r.bus.SendOnce(r.Context(), envelope.Envelope{
		ID: "answer-" + id, From: afar, To: agent.Owner, Kind: envelope.KindReply, InReplyTo: r.task(id).Brief, Text: "go test: ok", Time: time.Now(),
	})
	testworld.Must(r, err)
}

// A task that is answered on another host is closed once what was committed there is here. Until then who asked is told
// once, and other tasks do not wait.
func TestClosedOnceBrought(t *testing.T) {
	r := newRig(t)
	repo := testworld.NewRepo(t, t.TempDir())
	id := r.startAfar(repo)
	var gone atomic.Bool
	gone.Store(true)
	asked := make(chan struct{}, 100)
	r.keeper.Bring = func(context.Context, agent.ID) error {
		defer func() { asked <- struct{}{} }()
		if gone.Load() {
			return errors.New("build1: is away")
		}
		repo.Git("update-ref", away.Ref(afar), repo.Commit("one", "b.txt", "b\n"))
		return nil
	}
	r.pass()
	r.answerAfar(id)
	testworld.Wait(t, "who asked is told", func() bool {
		r.pass()
		mail := r.inbox(agent.Owner, envelope.KindNotice)
		return len(mail) > 0 && strings.Contains(mail[0].Text, "stays in progress until what agent1@build1 has committed is here, which build1 does not send: build1: is away")
	})
	r.says(id, "in_progress agent1@build1 1")
	testworld.Contains(t, r.now(id), "answered, and stays in progress until what agent1@build1 has committed is here, which build1 does not send: build1: is away")
	gone.Store(false)
	testworld.Wait(t, "it is closed", func() bool {
		r.pass()
		return r.task(id).State == store.TaskDone
	})
	k := r.task(id)
	testworld.Equal(t, k.Head, repo.Git("rev-parse", "HEAD"), "head")
	testworld.Equal(t, k.Proof, "go test: ok")
	testworld.Equal(t, len(r.inbox(agent.Owner, envelope.KindNotice)), 1, "notices")
}

// What will never come does not keep the task: it is claimed, and a note says what is missing.
func TestClosedUnbrought(t *testing.T) {
	r := newRig(t)
	id := r.startAfar(testworld.NewRepo(t, t.TempDir()))
	r.keeper.Bring = func(context.Context, agent.ID) error { return away.Refuse(errors.New("what came is no pack")) }
	r.answerAfar(id)
	testworld.Wait(t, "it is closed", func() bool {
		r.pass()
		return r.task(id).State == store.TaskDone
	})
	testworld.Equal(t, r.task(id).Head, "")
	notes := testworld.Got(r.db.Notes(t.Context(), store.NoteFilter{About: id}))(r)
	testworld.Equal(t, len(notes.Items) == 1 && strings.Contains(notes.Items[0].Text, "was not brought here: what came is no pack"), true, "noted: %+v", notes.Items)
}

// A brief that was recorded and not sent is sent to another host once, and one that waits here is taken back.
func TestBriefAfar(t *testing.T) {
	r := newRig(t)
	id := r.startAfar(testworld.NewRepo(t, t.TempDir()))
	testworld.Got(r.crew(agent.Owner).Book().Alter(t.Context(), id, func(k *store.Task) ([]store.Op, error) { // as if killed
		k.Briefed = 0
		return nil, nil
	}))(r)
	r.begin()
	r.pass()
	r.says(id, "in_progress agent1@build1 1")
	for _, e := range r.inbox(afar, envelope.KindBrief) { // which its host takes once
		testworld.Equal(t, e.ID, r.task(id).Brief)
	}
	r.start(id, "agent2")
	testworld.Equal(t, len(r.inbox(afar, envelope.KindBrief)), 0, "briefs")
}

// A task that waits for another gets what that has committed to its worker's host before it starts there. While the host is away
// it waits, and what will never cross blocks it.
func TestPreparedAfar(t *testing.T) {
	r := newRig(t)
	r.startAfar(testworld.NewRepo(t, t.TempDir()))
	first := r.add("first")
	second := r.add("second", first)
	w := r.wish(afar)
	w.Reach = func(context.Context, agent.ID, string, bool) error { return nil }
	testworld.Got(r.crew(agent.Owner).Start(t.Context(), second, w))(t)
	testworld.Got(r.crew(agent.Owner).Edit(t.Context(), first, task.Change{State: store.TaskDone, Proof: "yes"}))(t)
	begin := make(chan error, 1)
	r.keeper.Begin = func(ctx context.Context, k store.Task) error {
		testworld.Equal(t, k.ID, second)
		return <-begin
	}
	r.pass()
	r.says(second, "open agent1@build1 0")
	begin <- errors.New("build1: is away")
	testworld.Wait(t, "who asked is told", func() bool {
		r.pass()
		return strings.Contains(fmt.Sprint(r.inbox(agent.Owner, envelope.KindNotice)), "starts once agent1@build1 has the commits that it builds on, which build1 does not take: build1: is away")
	})
	r.says(second, "open agent1@build1 0")
	testworld.Contains(t, r.now(second), "build1 does not take: build1: is away")
	close(begin)
	testworld.Wait(t, "it is given out", func() bool {
		r.pass()
		return r.task(second).Briefed != 0
	})

	third := r.add("third", first)
	testworld.Got(r.crew(agent.Owner).Book().Alter(t.Context(), third, func(k *store.Task) ([]store.Op, error) {
		k.Assignee, k.Starter = afar, agent.Owner
		return nil, nil
	}))(t)
	r.keeper.Begin = func(context.Context, store.Task) error { return away.Refuse(errors.New("it takes too much")) }
	testworld.Wait(t, "it is blocked", func() bool {
		r.pass()
		return r.task(third).State == store.TaskBlocked
	})
	testworld.Equal(t, r.now(third), "it takes too much")
}
