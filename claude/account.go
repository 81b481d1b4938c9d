package claude

import (
	"path/filepath"
	"time"

	"netsky/agent"
	"netsky/internal/execx"
)

// loginOf returns where Claude Code with an environment, in a directory, finds its
// credentials; settings is the file that it is started with.
func loginOf(env []string, dir, settings string) *Login {
	config := configDir(env)
	return &Login{
		Env: env, Global: globalConfig(env), Credentials: filepath.Join(config, ".credentials.json"),
		Settings: []string{
			settings, filepath.Join(dir, ".claude", "settings.local.json"), filepath.Join(dir, ".claude", "settings.json"),
			filepath.Join(config, "settings.json"),
		},
	}
}

// Account names the login that a start would use now.
func (r *Runtime) Account(l agent.Launch) (name string, changed time.Time) {
	return loginOf(execx.Clean(l.Env), l.Dir, r.options(l.Agent).Settings).Account()
}

// Account names the login that a turn would use now, as [Login] does.
func (s *Session) Account() (name string, changed time.Time) {
	s.mu.Lock()
	if s.login == nil {
		if l, err := s.Home.LoadLaunch(s.Agent); err == nil && l.Start == s.Start {
			s.login = loginOf(l.Env, l.Dir, s.Home.Path(settingsFile(s.Agent)))
		}
	}
	login := s.login
	s.mu.Unlock()
	return login.Account()
}
