package spawn_test

import (
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// BenchmarkInspector is one look at 50 agents of which nothing has changed.
func BenchmarkInspector(b *testing.B) {
	w := newWorld(b)
	var names []string
	for i := range 50 {
		names = append(names, string(agent.Clone(i+1)))
	}
	w.up(sh(ready+"exec sleep 1000"), names...)
	i := w.l.NewInspector()
	for name, inspect := range map[string]func() (spawn.Statuses, error){
		"all": func() (spawn.Statuses, error) { return w.l.Inspect(w.ctx) }, "changed": func() (spawn.Statuses, error) { return i.Inspect(w.ctx) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				testworld.Got(inspect())(b)
			}
		})
	}
}
