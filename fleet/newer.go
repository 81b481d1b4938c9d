package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/config"
	"netsky/daemon/update"
	"netsky/daemon/update/checkout"
	"netsky/daemon/update/release"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

// A Look is one at the place where new versions of netsky are.
type Look struct {
	AtMS    int64  `json:"at_ms"`
	Version string `json:"version,omitempty"` // that is newer
	Error   string `json:"error,omitempty"`
}

const lookFile = update.Dir + "/look.json"

// LastLook returns the last look of a home; its error matches fs.ErrNotExist if there was none.
func LastLook(h home.Dir) (Look, error) { return home.Load[Look](h, lookFile) }

// LookForUpdates looks for a new version as often as [self] says, across restarts of the daemon, and tells the owner once of
// each, until ctx ends.
func (f Program) LookForUpdates(ctx context.Context) error {
	for {
		every := f.Config.Self.Every()
		last, err := LastLook(f.Home)
		if err != nil { // there was none, or nobody can tell: the file is replaced
			last = Look{}
		}
		// The clock may have been ahead.
		if err := proc.Sleep(ctx, min(every, time.Until(time.UnixMilli(last.AtMS).Add(every)))); err != nil {
			return err
		}
		now := Look{AtMS: time.Now().UnixMilli()}
		if now.Version, err = f.newer(ctx); err == nil && now.Version != "" {
			err = f.tellNewer(ctx, now.Version)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			now.Error = err.Error()
		}
		if err := f.Home.Save(lookFile, now, false); err != nil {
			return err
		}
	}
}

// newer names the version that is newer than this one where [self] looks, "" for none.
func (f Program) newer(ctx context.Context) (string, error) {
	if from := f.Config.Self.From; from != "" {
		path, err := config.Path(f.Home, f.userHome(), from)
		if err != nil {
			return "", err
		}
		_, version, err := release.Newest(path)
		if err != nil || version == "" || release.Compare(version, f.Version) <= 0 {
			return "", err
		}
		return version, nil
	}
	in, err := release.Find(ctx, f.Launcher.Binary, f.Environ)
	if err != nil {
		return "", err
	}
	if in.Kind != release.FromCheckout {
		return "", advice.With(errors.New("[self] has check, but no from: there is nowhere to look"), "set from to a directory of releases")
	}
	s, err := checkout.Look(ctx, in.Root, f.Environ)
	if err != nil {
		return "", err
	}
	next, err := checkout.Fetch(ctx, s, f.Environ)
	if err != nil || next.Revision == s.Revision {
		return "", err
	}
	return fmt.Sprintf("%s of %s", next.Revision[:min(len(next.Revision), 10)], cmp.Or(s.Upstream, s.Branch)), nil
}

func (f Program) tellNewer(ctx context.Context, version string) error {
	_, _, err := f.Launcher.Bus.SendOnce(ctx, envelope.Envelope{
		ID: fmt.Sprintf("self-new-%x", sha256.Sum256([]byte(version)))[:len("self-new-")+12], From: agent.Root, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Time: time.Now(),
		Text: envelope.SafeText(fmt.Sprintf("netsky %s is there; this is %s. `netsky self update` shows what is new and installs it.", version, f.Version)),
	})
	if errors.Is(err, bus.ErrUsed) {
		err = nil
	}
	return err
}
