package cli

import (
	"netsky/cli/config"
)

// cfg returns the configuration, which is read once.
func (a *app) cfg() (config.Config, error) {
	a.once.Do(func() {
		h, err := a.home()
		if err != nil {
			a.cfgErr = err
			return
		}
		usable := false
		a.config, usable, err = config.Load(h)
		switch {
		case err != nil && usable && a.lenient:
			a.warn("%v; ignored here, but fix it before the next `netsky up`", err)
		case err != nil:
			a.cfgErr = exitError{exitUsage, err}
		}
		if listen := a.getenv("NETSKY_LISTEN"); listen != "" {
			a.config.Dashboard.Listen = listen
		}
	})
	return a.config, a.cfgErr
}

// placed makes a path from netsky.toml absolute.
func (a *app) placed(path string) (string, error) {
	h, err := a.home()
	if err != nil {
		return "", err
	}
	return config.Path(h, a.getenv("HOME"), path)
}

// expand makes a path that a person typed absolute.
func (a *app) expand(path string) (string, error) { return config.Expand(a.getenv("HOME"), path) }
