package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/cli/doctor"
	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon/update"
	"netsky/daemon/update/release"
	"netsky/fleet"
	"netsky/internal/words"
	"netsky/store"
)

// selfVerbs are about netsky's own program.
type selfVerbs struct{ *app }

func (a selfVerbs) selfCommand() *cli.Command {
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print one JSON object"}
	yes := &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}
	agents := &cli.BoolFlag{Name: "agents", Usage: "then restart the agents that run another build, one after the other, each once its turn has ended"}
	return &cli.Command{
		Name: "self", Usage: "show, update or roll back netsky itself", Action: a.needsSub,
		Description: "An update is built or unpacked beside the program that runs, and checked against a copy of the records. Then a\n" +
			"supervisor exchanges the program, restarts the daemon and watches it: what does not operate within 30 s, or stops\n" +
			"doing so in the next 10 s, is taken back, and you are told why. Agents continue meanwhile.",
		Subcommands: []*cli.Command{
			{Name: "status", Usage: "print what is installed, how, and how the last update went", Flags: []cli.Flag{asJSON}, Action: a.selfStatus},
			{
				Name: "update", Usage: "install a newer netsky", ArgsUsage: "[FILE|DIR]", Args: true, Action: a.selfUpdate,
				Description: "FILE is a release, netsky_VERSION_linux_ARCH.tar.gz with its SHA256SUMS beside it; of DIR, a directory of releases, the\n" +
					"newest is installed. Without either, netsky takes what `from` under [self] in netsky.toml names; without that, a checkout\n" +
					"fetches the branch that yours follows, shows what is new and builds it. Where [self] has `signers`, one of them must\n" +
					"have signed a release. What a package manager has installed is not replaced.",
				Flags: []cli.Flag{yes, &cli.BoolFlag{Name: "force", Usage: "install an older version, the same once more, or one with faults"},
					&cli.BoolFlag{Name: "again", Usage: "install another build of the same version, too"}, agents, asJSON},
			},
			{
				Name: "rollback", Usage: "put the program of before the last update back", Flags: []cli.Flag{yes, asJSON}, Action: a.selfRollback,
			},
			{
				Name: "check", Usage: "migrate and examine the home", Hidden: true, Action: a.selfCheck,
				Description: "For `netsky self update`, which runs it as the new program, on a copy of the home.",
			},
		},
	}
}

// daemonRestart restarts the daemon under a supervisor.
func (a selfVerbs) daemonRestart(c *cli.Context) error {
	report := a.printed(c)
	l, err := daemonVerbs(a).night()
	if err != nil {
		return err
	}
	f := a.fleetOf(l)
	f.UI = ui{a: a.app, report: report}
	r, err := fleet.Program{Fleet: f}.Restart(c.Context)
	return a.ran(c, r, err)
}

// printed is the report of a run's steps.
func (a selfVerbs) printed(c *cli.Context) report {
	if c.Bool("json") {
		return lines(func(string) {})
	}
	return lines(func(text string) { a.print("%s", text) })
}

// ran prints how a run went.
func (a selfVerbs) ran(c *cli.Context, r update.Run, err error) error {
	if errors.Is(err, fleet.ErrStopped) || errors.Is(err, update.ErrInterrupted) {
		err = exitError{128 + int(endedBy(c.Context)), err}
	}
	if c.Bool("json") && r.ID != "" {
		return errors.Join(a.writeJSON(r), err)
	}
	if err == nil {
		a.print("%s", took(r))
	}
	return err
}

// took says how long netsky was without a daemon, and what was copied meanwhile.
func took(r update.Run) string {
	text := "done: it operates, as netsky " + r.To.Version + "; " + (time.Duration(r.AnswersMS-r.StoppedMS) * time.Millisecond).String() + " without a daemon"
	if r.Idle {
		text = "done; the daemon is not running: `netsky up` starts it"
	}
	if r.Why != "" {
		text += "\nbut " + r.Why
	}
	for _, s := range r.Steps {
		if s.Name == string(update.Copying) && s.Note != "" {
			text += "\nthe copy of the records: " + s.Note + ", " + r.Backup + " in netsky's home"
		}
	}
	return text
}

func (a selfVerbs) selfUpdate(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("self update: at most one release or directory")
	}
	if _, terminal := view.Width(a.in); c.Bool("force") && !terminal {
		return usagef("self update: --force is for you at a terminal")
	}
	report := a.printed(c)
	f, err := a.fleetFor(ui{a: a.app, report: report})
	if err != nil {
		return err
	}
	r, err := fleet.Program{Fleet: f}.Update(c.Context, fleet.UpdateRequest{
		From: c.Args().First(), Yes: c.Bool("yes"), Force: c.Bool("force"), Again: c.Bool("again"), Faults: a.faults,
	})
	if errors.Is(err, fleet.ErrCurrent) {
		if c.Bool("json") {
			return a.writeJSON(r)
		}
		a.print("%v", err)
		return nil
	}
	if err = a.ran(c, r, err); err == nil && c.Bool("agents") {
		err = fleet.Program{Fleet: f}.RenewAgents(c.Context, r.To.Version)
	}
	return err
}

func (a selfVerbs) selfRollback(c *cli.Context) error {
	a.bears = config.Whole // the program to go back to may be the one that understands it
	f, err := a.fleetFor(ui{a: a.app, report: a.printed(c)})
	if err != nil {
		return err
	}
	r, err := fleet.Program{Fleet: f}.Rollback(c.Context, c.Bool("yes"))
	return a.ran(c, r, err)
}

// faults returns what the doctor finds wrong. The link is left out: what ails it may be another host or the network, or be
// mended by the update.
func (a selfVerbs) faults(ctx context.Context) (list []string) {
	o := setupVerbs(a).doctorOptions()
	o.Within = 30 * time.Second // a machine that is busy is no fault
	for _, f := range doctor.Run(ctx, o).Checks {
		if f.Level == doctor.Wrong && f.Check != "link" {
			list = append(list, f.Check+": "+f.Text)
		}
	}
	return list
}

// maxChangelog is how much of the changelog a check prints, in bytes.
const maxChangelog = 32 << 10

// selfCheck migrates and examines a home, which is a copy of one.
func (a selfVerbs) selfCheck(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	found := fleet.Checked{Version: Version, Schema: store.Schema(), Faults: []string{}, Changelog: Changelog[:min(len(Changelog), maxChangelog)]}
	db, err := store.Open(c.Context, h)
	if err == nil {
		err = db.Check(c.Context)
		db.Close()
	}
	if err != nil {
		found.Faults = append(found.Faults, "records: "+strings.ReplaceAll(err.Error(), h.Root(), "HOME"))
	}
	for _, f := range a.faults(c.Context) {
		found.Faults = append(found.Faults, strings.ReplaceAll(f, h.Root(), "HOME"))
	}
	return a.writeJSON(found)
}

// supervise carries out the pending run.
func (a selfVerbs) supervise(c *cli.Context) error {
	a.bears = config.Whole
	h, err := a.home()
	if err != nil {
		return err
	}
	b, err := a.bus()
	if err != nil {
		return err
	}
	s := update.Supervisor{
		Home: h, Bus: b, Environ: fleet.DaemonEnviron(h, a.environ), Escalate: escalating(h, ownerVerbs(a).allWays(h)),
		Adopt: func(ctx context.Context, r update.Run) error { return fleet.Adopt(ctx, r, a.environ) },
	}
	r, err := s.Supervise(c.Context)
	if r.ID != "" {
		a.print("%s %s %s: %s", time.Now().UTC().Format(time.RFC3339), r.Kind, r.ID, r.State)
	}
	return err
}

// selfView is what `netsky self status` shows.
type selfView struct {
	Version string       `json:"version"`
	Binary  string       `json:"binary"`
	Kind    release.Kind `json:"kind"`
	Package string       `json:"package,omitempty"`
	Update  string       `json:"update,omitempty"` // the command that updates the package
	Every   string       `json:"check,omitempty"`  // how often it looks for a new version
	Look    *fleet.Look  `json:"look,omitempty"`
	Last    *update.Run  `json:"last,omitempty"`
	// Installed is what has put the present program in its place, to which a rollback belongs.
	Installed *update.Run `json:"installed,omitempty"`
}

func (a selfVerbs) selfStatus(c *cli.Context) error {
	a.bears = config.Parts
	h, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	bin, err := fleet.Binary()
	if err != nil {
		return err
	}
	in, err := release.Find(c.Context, bin, a.environ)
	if err != nil {
		a.warn("%v", err)
	}
	v := selfView{Version: Version, Binary: cmp.Or(in.Binary, bin), Kind: in.Kind, Package: in.Package, Update: in.Command, Every: cfg.Self.Check}
	if r, err := update.Load(h); err == nil {
		v.Last = &r
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r, err := update.Installed(h); err == nil {
		v.Installed = &r
	}
	if l, err := fleet.LastLook(h); err == nil {
		v.Look = &l
	}
	if c.Bool("json") {
		return a.writeJSON(v)
	}
	a.printSelf(v)
	return nil
}

func (a selfVerbs) printSelf(v selfView) {
	how := string(v.Kind)
	if v.Package != "" {
		how += " " + v.Package
	}
	a.print("netsky %s, %s (%s)", v.Version, words.Tilde(a.getenv("HOME"), v.Binary), cmp.Or(how, "not known how it was installed"))
	if v.Update != "" {
		a.print("`%s` updates it, then `netsky daemon restart`", v.Update)
	}
	switch {
	case v.Every == "":
		a.print("it does not look for new versions by itself")
	case v.Look == nil:
		a.print("the daemon looks for a new version every %s", v.Every)
	default:
		a.print("the daemon looks for a new version every %s; %s ago: %s", v.Every, ago(v.Look.AtMS), cmp.Or(v.Look.Error, v.Look.Version, "nothing new"))
	}
	r := v.Last
	if r == nil {
		a.print("no update and no restart of the daemon so far")
		return
	}
	how = string(r.State)
	if r.State == update.Failed && !slices.ContainsFunc(r.Steps, func(s update.Step) bool { return s.Name == string(update.Stopping) }) {
		how = "not done; nothing was changed"
	}
	a.print("last %s, %s ago: %s", r.Kind, ago(r.Steps[0].AtMS), how)
	if r.To.Version != r.From.Version && r.To.Version != "" {
		a.print("  from %s to %s", r.From.Version, r.To.Version)
	}
	for _, s := range r.Steps {
		spent := "in progress"
		if s.EndedMS != 0 {
			spent = time.Duration((s.EndedMS - s.AtMS) * int64(time.Millisecond)).String()
		}
		a.print("  %s", strings.TrimRight(fmt.Sprintf("%-12s%-12s%s", s.Name, spent, strings.Join(slices.DeleteFunc([]string{s.Note, s.Error}, words.Blank), "; ")), " "))
	}
	if i := v.Installed; i != nil {
		a.print("`netsky self rollback` goes back to %s, what was installed before the %s %s ago", i.From.Version, i.Kind, ago(i.Steps[0].AtMS))
	}
}

func ago(ms int64) string { return words.Ago(time.Since(time.UnixMilli(ms))) }
