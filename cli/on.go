package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/link"
	"netsky/link/ssh"
)

// hostVerbs run verbs on other machines.
type hostVerbs struct{ *app }

// onlyHere are the verbs that make no sense on another host: they are about this terminal, this
// shell or the hosts that this home knows.
var onlyHere = []string{"completion", "demo", "drill", "hosts"}

// onHost takes the option --on off the beginning of a command line. ok is false if it is not there.
func onHost(line []string) (host string, rest []string, ok bool) {
	if len(line) == 0 {
		return "", nil, false
	}
	name, host, given := strings.Cut(line[0], "=")
	if name != "--on" && name != "-on" {
		return "", nil, false
	}
	if rest = line[1:]; !given && len(rest) > 0 {
		host, rest = rest[0], rest[1:]
	}
	return host, rest, true
}

// on runs the rest of a command line on a host. What is read here is [host.NAME] alone.
func (a hostVerbs) on(ctx context.Context, host string, line []string) error {
	verb := ""
	if i := slices.IndexFunc(line, func(w string) bool { return !strings.HasPrefix(w, "-") }); i >= 0 {
		verb = line[i]
	}
	switch _, _, twice := onHost(line); {
	case host == "" || strings.HasPrefix(host, "-"):
		return usagef("--on: needs a host, as in `netsky --on build1 status`; `netsky hosts` lists those of netsky.toml")
	case twice:
		return usagef("--on: is there twice; a verb runs on one host")
	case slices.Contains(onlyHere, verb):
		return usagef("--on: `%s` is only for this machine; run it without --on", verb)
	}
	self, err := a.self()
	if err == nil {
		err = fleet.May(self, "on")
	}
	if err != nil {
		return err
	}
	c, h, err := a.reach(host)
	if err != nil {
		return err
	}
	vars := ssh.Piped + "=1"
	if self != agent.Owner { // who has there the rights of the one with that name, not the owner's
		vars += " AGENT_N=" + a.getenv("AGENT_N")
	}
	quick := self == agent.Owner && looks(line)
	if quick {
		if said, err := c.Look(ctx, h, a.in, a.out, a.err, line...); err == nil {
			_, _ = a.stdout().Write(said)
			return nil
		}
	}
	err = c.Run(ctx, h, a.in, a.out, a.err, vars, line...)
	if quick && err == nil {
		c.OpenLook(ctx, h)
	}
	return reached(ctx, h, err)
}

// whileRead returns a context that also ends once nobody reads the output any more, as after a
// Ctrl-C over there.
func whileRead(ctx context.Context, out *os.File) context.Context {
	os.Unsetenv(ssh.Piped) // what this one starts is not concerned
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for one := []unix.PollFd{{Fd: int32(out.Fd())}}; ; { // that it has no reader is reported unasked
			if _, err := unix.Poll(one, -1); err != unix.EINTR {
				break
			}
		}
		cancel(signaled{syscall.SIGHUP})
	}()
	return ctx
}

// hosts returns those of netsky.toml and those invited by another name, in order, and what
// reaches them. Without an error there are no others.
func (a hostVerbs) hosts() (c ssh.Client, list []ssh.Host, err error) {
	h, err := a.home()
	if err != nil {
		return c, nil, err
	}
	cfg, _, err := config.Load(h)
	for name, host := range cfg.Host {
		list = append(list, ssh.Host{Name: name, Dest: cmp.Or(host.SSH, name), Netsky: host.Netsky})
	}
	invited, _ := link.LoadTunnels(h) // the link reports what is wrong with them
	for name, to := range invited {
		if _, named := cfg.Host[name]; !named {
			list = append(list, to)
		}
	}
	slices.SortFunc(list, func(x, y ssh.Host) int { return strings.Compare(x.Name, y.Name) })
	return ssh.Client{Home: h, Environ: a.environ}, list, err
}

// reach finds one of the hosts; any other name is a destination of ssh's.
func (a hostVerbs) reach(name string) (ssh.Client, ssh.Host, error) {
	c, list, err := a.hosts()
	i := slices.IndexFunc(list, func(h ssh.Host) bool { return h.Name == name })
	switch {
	case i >= 0: // whatever is wrong elsewhere in the file
		err = list[i].Check()
	case err == nil:
		list, i = append(list, ssh.Host{Name: name, Dest: name}), len(list)
		err = list[i].Check()
	}
	if err != nil {
		return c, ssh.Host{}, exitError{exitUsage, err}
	}
	return c, list[i], nil
}

// hangUp ends the connections to other hosts that are kept.
func (a hostVerbs) hangUp(ctx context.Context, h home.Dir) {
	if err := (ssh.Client{Home: h, Environ: a.environ}).Close(ctx); err != nil {
		a.warn("%v; it ends by itself after ten minutes", err)
	}
}

// reached returns the error of a verb on a host, whose exit status is that of the verb there.
func reached(ctx context.Context, h ssh.Host, err error) error {
	var failed ssh.Failed
	switch {
	case ctx.Err() != nil:
		return exitError{128 + int(endedBy(ctx)), errTold}
	case errors.As(err, &failed):
		return exitError{failed.Status, errTold}
	case errors.Is(err, ssh.ErrNoNetsky) && h.Netsky != "":
		return advice.With(fmt.Errorf("%s: %w: %s is not there", h.Name, err, h.Netsky), "correct `netsky` under [host.%s] in netsky.toml, or `netsky hosts install %s`", h.Name, advice.Word(h.Name))
	case errors.Is(err, ssh.ErrNoNetsky):
		return advice.With(fmt.Errorf("%s: %w", h.Name, err), "`netsky hosts install %s` brings this one there", advice.Word(h.Name))
	case errors.Is(err, ssh.ErrUnreachable) && h.Dest == h.Name && agent.IsHost(h.Name):
		return advice.With(fmt.Errorf("%s: %w", h.Name, err), "`ssh %s true` must work before netsky does; [host.%[1]s] in netsky.toml names another destination", h.Name)
	case errors.Is(err, ssh.ErrUnreachable):
		return advice.With(fmt.Errorf("%s: %w", h.Name, err), "`ssh %s true` must work before netsky does", advice.Word(h.Dest))
	case err != nil:
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}
