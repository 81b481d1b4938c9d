package cli

import (
	"netsky/cli/config"
)

// cfg is the configuration, read once.
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
			a.warn("%v; ignored here, but correct it before the next `netsky up`", err)
		case err != nil:
			a.cfgErr = exitError{exitUsage, err}
		}
		if listen := a.getenv("NETSKY_LISTEN"); listen != "" {
			a.config.Dashboard.Listen = listen
		}
	})
	return a.config, a.cfgErr
}

// placed is a path of netsky.toml.
func (a *app) placed(path string) (string, error) {
	h, err := a.home()
	if err != nil {
		return "", err
	}
	return config.Path(h, a.getenv("HOME"), path)
}

// expand is a path that a person typed.
func (a *app) expand(path string) (string, error) { return config.Expand(a.getenv("HOME"), path) }
