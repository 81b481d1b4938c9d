package cli

import (
	"netsky/config"
)

// cfg returns the configuration, which is read once.
func (a *app) cfg() (config.Config, error) {
	a.once.Do(func() {
		h, err := a.home()
		if err != nil {
			a.cfgErr = err
			return
		}
		harm := config.Harm(0)
		a.config, harm, err = config.Load(h)
		switch {
		case err != nil && harm <= a.bears:
			a.mistake, a.harm = err, harm
			if harm == config.Ignored {
				a.warn("%v; the key is ignored, but fix it before the next `netsky up`", err)
			} else {
				a.warn("%v; ignored here, but until it is corrected nothing is started, not even an agent that has died", err)
			}
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
