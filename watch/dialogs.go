package watch

import (
	"context"
	"time"

	"netsky/spawn"
	"netsky/spawn/pane"
)

// overlaidEvery is how often the screen of an agent that keeps working behind a dialog
// is looked at.
const overlaidEvery = 5 * time.Second

// A dialogWatch is what is known of the dialogs of an agent that does not know of them.
type dialogWatch struct {
	over    time.Time // when the screen was last checked
	overlay bool      // one was there
}

// overlaid looks at the screen of an agent with a receiver for a dialog that covers it
// without the agent knowing of it, which status shows then.
func (l *loop) overlaid(ctx context.Context, w *ward, r spawn.Runtime) {
	overlaid, _ := r.(pane.Overlaid)
	last, stood := w.receiver.over, w.receiver.overlay
	if overlaid == nil || time.Since(last) < overlaidEvery {
		return
	}
	id, start, asked := w.Agent, w.Start, time.Now()
	l.work(ctx, w, func(ctx context.Context) func() {
		now, err := l.roster.since(ctx, asked)
		st := now.list.Find(id)
		if err != nil || now.err != nil || st.Start != start || !st.Alive() {
			return nil // if it is unknown what runs, look reports that
		}
		// tmux reports whole seconds.
		if st.Pane() != "" && (stood || !st.Changed().Before(last.Add(-2*time.Second))) {
			if shown, lerr := l.o.Launcher.Lookout(st, overlaid).LookOver(ctx); lerr == nil {
				stood = shown
			} else {
				err = lerr
			}
		}
		return func() {
			w.receiver.over, w.receiver.overlay = asked, stood
			l.failed(ctx, w, "attend", err)
		}
	})
}
