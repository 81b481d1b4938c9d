package daemon_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsky/daemon"
	"netsky/internal/testworld"
)

// Services are stopped in reverse order, each when the one before has ended; one that
// does not stop holds up the others no longer than its time, and whatever fails is
// named.
func TestServices(t *testing.T) {
	errFull := errors.New("the disk is full")
	for name, c := range map[string]struct {
		cause string // the service that ends by itself, after a minute
		fails map[string]error
		hangs string
		took  time.Duration
		want  []string // of the error
	}{
		"told to":          {},
		"one ends":         {cause: "b", want: []string{"b: ended by itself"}},
		"one fails":        {cause: "b", fails: map[string]error{"b": errFull}, want: []string{"b: the disk is full"}},
		"fails at the end": {fails: map[string]error{"a": errFull, "c": errFull}, want: []string{"c: the disk is full", "a: the disk is full"}},
		"canceled":         {fails: map[string]error{"a": context.Canceled}},
		"does not stop":    {hangs: "b", took: 10 * time.Second, want: []string{"b: did not stop within 10s"}},
		"both":             {cause: "c", hangs: "b", took: 10 * time.Second, want: []string{"c: ended by itself", "b: did not stop within 10s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				release := make(chan struct{})
				ended := make(chan string, 3)
				var list []daemon.Service
				for _, id := range []string{"a", "b", "c"} {
					list = append(list, daemon.Service{Name: id, Run: func(ctx context.Context) error {
						if id == c.cause {
							time.Sleep(time.Minute)
							return c.fails[id]
						}
						<-ctx.Done()
						if id == c.hangs {
							<-release
						}
						ended <- id
						return c.fails[id]
					}})
				}
				if c.cause == "" {
					time.AfterFunc(time.Minute, cancel)
				}
				began := time.Now()
				err := daemon.RunAll(ctx, list...)
				testworld.Equal(t, time.Since(began)-time.Minute, c.took, "stopped after")
				text := ""
				if err != nil {
					text = err.Error()
				}
				if text != strings.Join(c.want, "\n") {
					t.Errorf("error %q, want %q", text, c.want)
				}
				close(release)
				synctest.Wait()
				close(ended)
				var order, want []string
				for id := range ended {
					if id != c.hangs {
						order = append(order, id)
					}
				}
				for _, id := range []string{"c", "b", "a"} {
					if id != c.cause && id != c.hangs {
						want = append(want, id)
					}
				}
				testworld.EqualList(t, order, want, "stopped in the order")
			})
		})
	}
}
