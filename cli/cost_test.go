//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"netsky/cli/view"
	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// used is what `netsky cost` says of an agent, and its tokens.
func (w *world) used(t *testing.T, agent string) (tokens string, money float64, complete bool) {
	t.Helper()
	var v struct {
		Sums []struct {
			Name   string
			Tokens struct {
				Input, Output int
				CacheRead     int `json:"cache_read"`
				CacheWrite    int `json:"cache_write"`
			}
			Money    float64
			Complete bool
		}
	}
	if out := w.must(t, "netsky", "cost", "--json"); json.Unmarshal([]byte(out), &v) != nil {
		t.Fatal(out)
	}
	for _, s := range v.Sums {
		if s.Name == agent {
			u := s.Tokens
			return fmt.Sprint(loopmodel.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}), s.Money, s.Complete
		}
	}
	return "", 0, false
}

// What agents on real Claude Code and Codex used is on record soon, as their models have counted
// it. A budget that is used up holds back what comes next until the owner allows as much again, and
// a mistake in netsky.toml changes nothing about that.
func TestCost(t *testing.T) {
	t.Parallel()
	w, claude := mustClaude(t)
	codex := w.addCodex(t)
	claude.Handle(func(q anthropic.Request) *anthropic.Reply {
		r := anthropic.Directives(q)
		r.Usage = &anthropic.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40}
		return r
	})
	codex.Handle(func(q openai.Request) *openai.Reply {
		r := openai.Directives(q)
		r.Usage = &loopmodel.Usage{Input: 1, Output: 2, CacheRead: 3}
		return r
	})
	const limited = "[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n[agents.2]\nruntime = \"codex\"\n[agents.1]\nruntime = \"claude\"\n" +
		"[agents.0]\nruntime = \"demo\"\n[agents.infinity]\nruntime = \"demo\"\n[price.\"" + openai.Model + "\"]\ninput = 1000000.0\noutput = 1000000.0\ncache_read = 0.0\n"
	w.config(t, freely+limited+"[budget]\nagent_tokens = 250\n")
	w.mustUp(t, "up", "2", "--no-attach", "--dir", w.dir+"/src")
	mustContain(t, "cost", w.must(t, "netsky", "cost"), view.NoUsage)
	mustContain(t, "the answer", w.mustAsk(t, "one"), "one")
	w.must(t, "netsky", "ask", "agent2", "two")
	testworld.WaitOr(t, func() bool {
		a, _, _ := w.used(t, "agent1")
		b, _, _ := w.used(t, "agent2")
		return a == fmt.Sprint(claude.Spent()) && b == fmt.Sprint(codex.Spent())
	}, func() string { return fmt.Sprint(w.must(t, "netsky", "cost"), claude.Spent(), codex.Spent()) })
	if _, money, complete := w.used(t, "agent2"); !complete || money < 2.9 || money > 3.1 {
		t.Errorf("agent2 has used %v (complete: %v), want 3", money, complete)
	}
	mustContain(t, "cost", w.must(t, "netsky", "cost", "--since", "1d"), "not known: no price for claude-", "40 % of agent1's budget for ")

	w.mustAsk(t, "two")
	w.mustShow(t, "inbox", "80 % of agent1's budget for ")
	w.mustAsk(t, "three") // 300 of 250
	w.mustShow(t, "needs", "budget", "agent1 has used up its budget: agent1's budget for ", "250 tokens")
	w.mustShow(t, "inbox", "120 % of agent1's budget for ")
	id := w.mustSend(t, "agent1", "four")
	w.mustShow(t, "status", "blocked", "budget used up until ")
	w.config(t, freely+limited+"[budget]\nagent_tokns = 250\n")
	status, out := w.within(t, nil, "", "netsky", "ask", "agent1", "--wait", "4s", "five")
	if status != 3 || !strings.Contains(out, "budget used up") {
		t.Errorf("ask: exit status %d, %s", status, out)
	}
	w.config(t, freely+limited+"[budget]\nagent_tokens = 250\n")
	testworld.Equal(t, len(w.answers(t, id)), 0, "it was answered beyond the budget")
	var v struct{ Needs []struct{ Code, Kind string } }
	testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "needs", "--json")), &v))
	for _, n := range v.Needs {
		if n.Kind == "budget" {
			mustContain(t, "approve", w.must(t, "netsky", "approve", n.Code), "allowed: agent1's budget for ", " is now 500 tokens")
		}
	}
	w.mustOne(t, id)
	w.must(t, "netsky", "down", "--all")
}
