package config_test

import (
	"testing"

	"netsky/config"
	"netsky/cost"
	"netsky/home"
	"netsky/internal/testworld"
)

// The prices and limits are those of the file; with a mistake that may be about them they are
// unknown, and with another they count.
func TestTerms(t *testing.T) {
	t.Parallel()
	const good = "[price.m]\ninput = 1.25\n[budget]\nday_tokens = 5\nagent_money = 2.5\n"
	price, limits := cost.Prices{"m": {Input: 1.25e9}}, cost.Limits{Day: cost.Limit{Tokens: 5}, Agent: cost.Limit{Nano: 2.5e9}}
	for _, tt := range []struct {
		name, text string
		unknown    bool
		limits     cost.Limits
	}{
		{"none", "", false, cost.Limits{}},
		{"right", good, false, limits},
		{"an unknown key in it", good + "task_tokns = 4\n", true, cost.Limits{}},
		{"a wrong value in it", good + "task_tokens = \"4\"\n", true, cost.Limits{}},
		{"less than nothing", good + "task_tokens = -4\n", true, cost.Limits{}},
		{"a table like it", "[budgets]\nday_tokens = 5\n", true, cost.Limits{}},
		{"a price without a model", "[price]\ninput = 5\n", true, cost.Limits{}},
		{"a mistake elsewhere", good + "[watchdog]\nhang = \"no\"\n", false, limits},
		{"an unknown key elsewhere", good + "[watchdog]\nhangs = \"30m\"\n", false, limits},
		{"no TOML", good + "[", true, cost.Limits{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.FastHome(t)
			testworld.Must(t, h.WriteFile(home.ConfigFile, []byte(tt.text), false))
			c, _, _ := config.Load(h)
			p, l, unknown := c.Terms()
			if l != tt.limits || unknown != tt.unknown || (len(p) == 1 && p["m"] == price["m"]) != (tt.limits == limits) {
				t.Errorf("Terms = %+v, %+v, %v", p, l, unknown)
			}
		})
	}
}
