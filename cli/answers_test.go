//go:build live

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/record"
)

// The same as fleet/bridge's two hundred with the programs themselves: ten requests, answered in two
// of the four ways at once, while the daemon is killed and started again.
func TestPhoneApprovals(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	w := mustPhone(t, "")
	up := func() { w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach") }
	up()
	d := approve.Desk{Home: w.home, Bus: bus.New(w.home, bus.Options{}), Warn: func(err error) { t.Error(err) }}
	for i := range 10 {
		effect := make(chan agent.Answer, 2)
		go func() {
			if a, settled, ok := d.Put(t.Context(), agent.Approval{Agent: "agent0", Start: fmt.Sprint("s-", i), Tool: "Bash", Text: fmt.Sprint("make ", i)}); ok {
				effect <- a
				settled(approve.Verdict(a.Allow))
			}
		}()
		var q agent.Approval
		testworld.Wait(t, "the request", func() bool {
			list, err := home.Approvals(w.home).List()
			if err == nil && len(list) == 1 && list[0].Mail != "" {
				q = list[0]
			}
			return q.Code != ""
		})
		w.gets("or no " + q.Code)
		ways := r.Perm(4)[:2]
		kill, allow := r.IntN(3) == 0, []bool{r.IntN(2) == 0, r.IntN(2) == 0}
		told := make([]answerTold, 2)
		var both sync.WaitGroup
		for k, way := range ways {
			both.Go(func() { told[k] = w.approves(way, q, allow[k]) })
		}
		if kill {
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // anywhere between the answer and its end
			w.killDaemon()
			up()
		}
		both.Wait()
		var a agent.Answer
		select {
		case a = <-effect:
		case <-time.After(testworld.Patience):
			t.Fatalf("request %d, answered in the ways %v, has no effect (daemon killed: %v); told %+v; the phone got %q", i, ways, kill, told, w.texts())
		}
		won := 0
		for k, way := range ways {
			got := told[k]
			if got.phone { // each is answered once; both may be the phone's
				w.gets(q.Code+" is settled: "+approve.By(a), q.Code+": "+approve.Verdict(a.Allow))
				continue
			}
			switch by := []string{2: "netsky approve", 3: approve.InDashboard}[way]; {
			case got.ok && (a.By != by || a.Allow != allow[k]):
				t.Errorf("request %d: %s was told that it won; it is %+v", i, by, a)
			case got.ok:
				won++
			case got.text != "" && !strings.Contains(got.text, approve.By(a)):
				t.Errorf("request %d: %s was told %q; it is %+v", i, by, got.text, a)
			}
		}
		if won > 1 {
			t.Errorf("request %d was won twice", i)
		}
		if len(effect) > 0 {
			t.Errorf("request %d took effect twice", i)
		}
	}
	if out := w.must(t, "netsky", "log", "-n", "1000"); strings.Count(out, "by the owner") != 10 {
		t.Errorf("the record:\n%s", out)
	}
}

// An answerTold is what the giver of an answer was told.
type answerTold struct {
	phone, ok bool
	text      string
}

// approves answers by text, by a reaction, in a terminal or on the page.
func (w *phoneWorld) approves(way int, q agent.Approval, allow bool) answerTold {
	ctx, cancel := context.WithTimeout(w.t.Context(), testworld.Patience)
	defer cancel()
	word, tapback, flag, button := "yes", 2001, "--deny=false", attention.Allow
	if !allow {
		word, tapback, flag, button = "no", 2002, "--deny", attention.Deny
	}
	switch way {
	case 0:
		w.says(word + " " + q.Code)
		return answerTold{phone: true}
	case 1:
		guid := ""
		testworld.Wait(w.t, "the text's guid", func() bool {
			return w.records(func(r record.Records) bool {
				list, err := r.Asked(ctx, "messages", "-;"+ownerHandle, q.Code)
				if err == nil && len(list) > 0 {
					guid = list[0].GUID
				}
				return guid != ""
			})
		})
		w.sim.Insert(messagesim.Message{From: ownerHandle, Text: "Liked it", Columns: map[string]any{"associated_message_type": tapback, "associated_message_guid": "p:0/" + guid}})
		return answerTold{phone: true}
	case 2:
		out, err := w.command(ctx, "netsky", "approve", flag, q.Code).CombinedOutput()
		return answerTold{ok: err == nil, text: string(out)}
	}
	n, _ := attention.Find(attention.List(attention.Sources{Approvals: []agent.Approval{q}}), q.Code)
	body, _ := json.Marshal(map[string]string{"code": q.Code, "digest": n.Digest, "answer": button})
	var told answerTold
	for {
		url, err := w.home.ReadFile("run/url", 1<<10)
		token, terr := w.home.ReadFile("run/token", 1<<10)
		if err == nil && terr == nil {
			req, _ := http.NewRequestWithContext(ctx, "POST", strings.TrimSpace(string(url))+"/api/approval-answer", strings.NewReader(string(body)))
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			req.Header.Set("Content-Type", "application/json")
			if res, err := http.DefaultClient.Do(req); err == nil {
				data := make([]byte, 1<<10)
				n, _ := res.Body.Read(data)
				res.Body.Close()
				told = answerTold{ok: res.StatusCode == http.StatusOK, text: string(data[:n])}
				if told.ok || res.StatusCode == http.StatusConflict { // else it was no daemon, or not this one
					return told
				}
			}
		}
		select {
		case <-ctx.Done():
			return told
		case <-time.After(50 * time.Millisecond): // the daemon is being started
		}
	}
}
