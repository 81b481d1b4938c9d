package fleet

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Rights lists the deeds of which rights.go says who may do them.
func Rights() []string { return slices.Sorted(maps.Keys(rights)) }

// Deeds lists the deeds, and those of them that other hosts may ask for.
func Deeds() (all, cross []string) {
	for _, d := range deeds() {
		all = append(all, d.name)
	}
	return all, crossing
}

// Probed gets the error of each context that ended a Probe without a question.
var Probed = make(chan error)

// Probe serves a deed that reports a step, warns, and asks for its result.
func (f *Fleet) Probe(w http.ResponseWriter, r *http.Request) {
	control{f}.serve(w, r, row("probe", "", "", func(f *Fleet, ctx context.Context, q struct {
		Question string `json:"question"`
	}) (string, error) {
		f.UI.Step(Step{Line: "begun"})
		for q.Question == "a flood" && ctx.Err() == nil {
			f.UI.Step(Step{Line: strings.Repeat("x", 1<<16)})
		}
		if q.Question == "" || ctx.Err() != nil {
			<-ctx.Done()
			Probed <- ctx.Err()
			return "", ctx.Err()
		}
		f.warn("careful")
		return f.UI.Ask(q.Question)
	}))
}
