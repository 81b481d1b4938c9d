package attention

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/words"
	"netsky/link"
	"netsky/link/team"
	"netsky/store"
	"netsky/view"
)

// A Host is another host of the team as it has told this one that it is. Its agents are under
// their addresses: agent3@build1.
type Host struct {
	Name    string       `json:"host"`
	Up      bool         `json:"up"`
	Seen    store.Time   `json:"seen,omitzero"` // when it was last heard of, by this host's clock
	Version string       `json:"version,omitempty"`
	Agents  []view.Agent `json:"agents"`
	Needs   int          `json:"needs"`            // how many items need the owner there
	More    int          `json:"more,omitempty"`   // agents and items that did not fit into what it tells
	Behind  int64        `json:"behind,omitempty"` // how many seconds its clock is behind this one's

	needs []Need
}

// AsOf says how old what is known of the host is, "" while it is up.
func (h Host) AsOf(now time.Time) string {
	switch {
	case h.Up:
		return ""
	case h.Seen == 0:
		return "not heard of yet"
	}
	return "as of " + words.Ago(now.Sub(h.Seen.Time())) + " ago"
}

// Summary says in a line how old what is known of the host is, and how many of its agents are in
// which state.
func (h Host) Summary(now time.Time) string {
	n := make(map[agent.State]int)
	for _, a := range h.Agents {
		n[a.State]++
	}
	var parts []string
	for _, s := range states {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if asOf := h.AsOf(now); asOf != "" {
		parts = append(parts, asOf)
	}
	return cmp.Or(strings.Join(parts, ", "), "no agents")
}

// A told is what a host tells of its agents, or of what needs the owner.
type told struct {
	List []json.RawMessage `json:"list"`
	More int               `json:"more,omitempty"`
}

// more is how many did not fit, as far as that can be.
func (t told) more() int { return min(max(t.More, 0), 1_000_000) }

const (
	maxTold     = 200 << 10 // of such a list
	maxToldText = 32 << 10  // of what an item says
	maxWord     = 300       // of a name or a line
)

// readTold reads one; a host that tells nothing that can be read has told nothing.
func readTold(data []byte) (t told) {
	_ = json.Unmarshal(data, &t)
	return t
}

func tell[T any](list []T) ([]byte, error) {
	t, size := told{List: []json.RawMessage{}}, 0
	for i, one := range list {
		data, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		if size += len(data) + 1; size > maxTold {
			t.More = len(list) - i
			break
		}
		t.List = append(t.List, data)
	}
	return json.Marshal(t)
}

// TellAgents returns what the owner's host is told of the agents here.
func TellAgents(list []view.Agent) ([]byte, error) {
	out := make([]view.Agent, 0, len(list))
	for _, a := range list {
		if a.State == agent.Down && !a.Wanted {
			continue
		}
		a.PID, a.Pane, a.Start, a.Evidence = 0, "", "", envelope.Line(a.Evidence, maxWord)
		a.Detail, a.Restart, a.Dir = envelope.Line(a.Detail, maxWord), envelope.Line(a.Restart, maxWord), envelope.Cut(a.Dir, maxWord)
		out = append(out, a)
	}
	return tell(out)
}

// TellNeeds returns what the owner's host is told of what needs the owner here. An item that
// is too long for that can be answered only here.
func TellNeeds(list []Need) ([]byte, error) {
	var out []Need
	for _, n := range list {
		if n.Host != "" || n.Kind == Link {
			continue
		}
		if len(n.Text) > maxToldText {
			n.Text, n.Options = envelope.Shorten(n.Text, maxToldText), []string{}
		}
		out = append(out, n)
	}
	return tell(out)
}

// Hosts returns the other hosts of the team, if this one is told how they are. What they say
// is checked: they are trusted with no word that a terminal or a person would act on.
func Hosts(h home.Dir, now time.Time) ([]Host, error) {
	list, err := link.Hosts(h)
	out := make([]Host, 0, len(list))
	for _, l := range list {
		one := Host{Name: l.Name, Up: l.Up(now), Version: word(l.State.Version), Behind: int64(l.Behind.Seconds())}
		if !l.Seen.IsZero() {
			one.Seen = store.At(l.Seen)
		}
		one.readAgents(l.State.Agents)
		one.readNeeds(l.Needs)
		out = append(out, one)
	}
	return out, err
}

// word returns a foreign word or line as it can be shown.
func word(s string) string { return envelope.Plain(envelope.Line(s, maxWord)) }

// here returns a time of the host's clock by this one's.
func (h Host) here(t store.Time) store.Time {
	if t == 0 || max(h.Behind, -h.Behind) < 10 {
		return t
	}
	at := t + store.Time(1000*h.Behind)
	if year := at.Time().Year(); year < 1 || year > 9999 { // no clock is so wrong, and no reader takes it
		return t
	}
	return at
}

func (h *Host) readAgents(data []byte) {
	t := readTold(data)
	h.Agents, h.More = make([]view.Agent, 0, len(t.List)), t.more()
	for _, raw := range t.List {
		var a view.Agent
		if json.Unmarshal(raw, &a) != nil || !local(a.ID) {
			continue
		}
		if !slices.Contains(states, a.State) {
			a.State, a.Detail = agent.Unknown, string(a.State)+" "+a.Detail
		}
		a.ID, a.Since, a.HeldUntil = a.ID.At(h.Name), h.here(a.Since), h.here(a.HeldUntil)
		for _, s := range []*string{&a.Evidence, &a.Detail, &a.Runtime, &a.Model, &a.Dir, &a.Version, &a.Restart, &a.Pane, &a.Start, &a.Fault.Account} {
			*s = word(*s)
		}
		h.Agents = append(h.Agents, a)
	}
	slices.SortStableFunc(h.Agents, func(x, y view.Agent) int { return agent.Compare(x.ID, y.ID) })
}

// states are those that this netsky knows.
var states = []agent.State{agent.Starting, agent.Idle, agent.Busy, agent.Waiting, agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping, agent.Down, agent.Unknown}

// local reports whether it is the address of an agent, without a host.
func local(id agent.ID) bool {
	got, err := agent.Parse(string(id))
	return err == nil && got == id && id.IsAgent()
}

func (h *Host) readNeeds(data []byte) {
	t := readTold(data)
	h.More += t.more()
	for _, raw := range t.List {
		var n Need
		if json.Unmarshal(raw, &n) == nil && isCode(n.Code) && !h.lists(n.Code) && len(n.Digest) <= 2*sha256.Size {
			h.needs = append(h.needs, h.need(n))
		}
	}
	h.Needs = len(h.needs)
}

// lists reports whether it has an item with that code there. Another would get a code of this home's.
func (h *Host) lists(code string) bool {
	return slices.ContainsFunc(h.needs, func(n Need) bool { return n.There.Code == code })
}

// isCode reports whether it may be an item's code there, and so stand in a command.
func isCode(s string) bool {
	return len(s) >= 3 && len(s) <= 16 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// need returns an item of the host as it is listed here. Its commands are made here, of its code.
func (h *Host) need(n Need) Need {
	there := n
	n.There, n.Host, n.Code, n.Since = &there, h.Name, n.Code+"@"+h.Name, h.here(n.Since)
	if n.AsOf = 0; !h.Up {
		n.AsOf = h.Seen
	}
	n.Agents = make([]agent.ID, 0, len(there.Agents))
	for _, id := range there.Agents {
		if local(id) {
			n.Agents = append(n.Agents, id.At(h.Name))
		}
	}
	if !slices.Contains(kinds, n.Kind) || n.Kind == Question && len(n.Agents) == 0 { // a later netsky's, or a question of nobody
		n.Kind = Daemon
	}
	for _, s := range []*string{&n.About, &n.Title, &n.Closed, &n.Otherwise} {
		*s = word(*s)
	}
	if n.About += " on " + h.Name; len(n.Agents) == 1 && n.Agents[0].Local() == agent.ID(there.About) {
		n.About = string(n.Agents[0])
	}
	n.Text, n.Reason = envelope.Plain(envelope.Shorten(n.Text, maxToldText+100)), envelope.Plain(envelope.Shorten(n.Reason, maxToldText))
	n.Dir = envelope.Plain(envelope.Cut(n.Dir, 4096))
	n.Message, n.Budget, n.Options = "", "", []string{}
	n.Commands = []Command{{"See there what settles it", "netsky --on " + h.Name + " needs " + there.Code}}
	if len(there.Options) > 0 {
		n.Options = []string{cmp.Or(map[Kind]string{Approval: Allow, Budget: More}[n.Kind], "allow"), Deny}
		n.Commands = []Command{{"Say yes", "netsky approve " + n.Code}, {"Deny", "netsky approve " + n.Code + " --deny"}}
	}
	n.Command = n.Commands[0].Line
	sum := sha256.Sum256([]byte(h.Name + "\x00" + there.Digest + "\x00" + n.Text))
	n.Digest = hex.EncodeToString(sum[:])
	return n
}

// elsewhere are the items of the other hosts. A question that has arrived here as mail is one
// of this host's.
func (s Sources) elsewhere() (list []Need) {
	for _, h := range s.Hosts {
		for _, n := range h.needs {
			if n.Kind != Question || !slices.ContainsFunc(s.Questions, func(q Asked) bool { return q.ID == n.There.Message && q.From.Host() == h.Name }) {
				list = append(list, n)
			}
		}
	}
	return list
}

// Stale says how old what is known of an item of another host is.
func (n Need) Stale(now time.Time) string {
	if n.AsOf == 0 {
		return ""
	}
	return " (as of " + words.Ago(now.Sub(n.AsOf.Time())) + " ago)"
}

// LinkOf returns how the link is, nil in a home without a team.
func LinkOf(h home.Dir) (*link.Report, error) {
	if _, err := team.LoadSelf(h); errors.Is(err, team.ErrNone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r, err := link.LoadReport(h)
	if err != nil { // it has never run
		return &link.Report{}, nil
	}
	return &r, nil
}

// LinkSettles is how long something about the link has to be wrong before it needs anybody.
const LinkSettles = 2 * time.Minute

// silentFor is for how long a host with agents says nothing before that needs anybody.
const silentFor = 5 * time.Minute

// CameAnotherWay reports whether this host's tunnel to that one is down, and that one was heard of since.
func (h Host) CameAnotherWay(r link.Report) bool {
	t, down := r.Tunnel(h.Name)
	return down && h.Seen.Time().After(t.Since)
}

// link is about the link to the other hosts, once something has been wrong with it for a while.
func (s Sources) link() (n Need, ok bool) {
	r := s.Link
	if r == nil || s.Daemon != DaemonRuns { // without a daemon that is what needs somebody
		return n, false
	}
	n = Need{
		Kind: Link, About: "the link", Otherwise: "mail for other hosts waits here, and theirs at the server",
		Commands: []Command{{"Look at the link", "netsky link"}, {"Look for the cause", "netsky doctor"}},
	}
	troubles := maps.Clone(r.Troubles)
	for _, o := range s.Hosts {
		if o.CameAnotherWay(*r) {
			delete(troubles, link.TunnelTo+o.Name)
		}
	}
	var lasting []string
	for _, about := range slices.Sorted(maps.Keys(troubles)) {
		if t := r.Troubles[about]; s.Now.Sub(t.Since) >= LinkSettles {
			lasting = append(lasting, about+": "+t.What)
		}
	}
	if s.Now.Sub(r.Since) >= LinkSettles { // so that all have been heard, if they can be
		for _, o := range s.Hosts {
			if o.Seen != 0 && s.Now.Sub(o.Seen.Time()) >= silentFor && (len(o.Agents) > 0 || r.Hosts[o.Name].Waiting > 0) {
				lasting = append(lasting, o.Name+": not heard of since "+o.Seen.Time().Local().Format(time.DateTime))
			}
		}
	}
	switch {
	case s.Now.Sub(r.Seen) >= LinkSettles:
		n.Title, n.Text, n.Since, n.id = "to the other hosts is not run by the daemon", "see the daemon's log", timeOf(r.Seen), []string{"gone"}
	case !r.Connected && s.Now.Sub(r.Since) >= LinkSettles:
		n.Title, n.Text, n.Since, n.id = "to the team's server is down", strings.Join(append([]string{r.Why}, lasting...), "; "), timeOf(r.Since), []string{"down"}
	case r.Connected && len(lasting) > 0:
		n.Title, n.Text, n.id = "has trouble", strings.Join(lasting, "; "), []string{"trouble"}
	default:
		return n, false
	}
	n.Text = envelope.Line(n.Text, 1000)
	if waits := Waits(*r); waits != "" {
		n.Otherwise += "; " + waits
	}
	return n, true
}

func timeOf(t time.Time) store.Time {
	if t.IsZero() {
		return 0
	}
	return store.At(t)
}

// Waits says how many messages wait here for which hosts, "" if none does.
func Waits(r link.Report) string {
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(r.Hosts)) {
		switch n := r.Hosts[host].Waiting; n {
		case 0:
		case 1:
			parts = append(parts, "1 message waits for "+host)
		default:
			parts = append(parts, fmt.Sprintf("%d messages wait for %s", n, host))
		}
	}
	return strings.Join(parts, ", ")
}
