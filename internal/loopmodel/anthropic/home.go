package anthropic

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// key is an API key in shape only.
const key = "sk-ant-api03-loopmodel-0000000000000000"

// Sandbox in the environment lets root use the mode that asks nothing. The program
// requires it; netsky never sets it.
const Sandbox = "IS_SANDBOX=1"

// A Seed is an answer to a first-run dialog, stored in a home beforehand.
type Seed int

// The seeds that a home may lack. Outside the work directories given to WriteHome the
// program asks whether to trust the directory.
const (
	Onboarding Seed = 1 << iota // theme and login
	APIKey                      // may the key of the environment be used?
)

// WriteHome makes dir a CLAUDE_CONFIG_DIR with which no dialog appears in these work
// directories or below them.
func WriteHome(dir string, workdirs ...string) error {
	return WriteHomeWithout(dir, 0, workdirs...)
}

// WriteHomeWithout is WriteHome without some seeds, so that their dialogs appear.
func WriteHomeWithout(dir string, out Seed, workdirs ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	config := map[string]any{}
	if out&Onboarding == 0 {
		config["hasCompletedOnboarding"] = true
	}
	if out&APIKey == 0 {
		config["customApiKeyResponses"] = map[string][]string{"approved": {key[len(key)-20:]}, "rejected": {}}
	}
	trusted := map[string]any{}
	for _, d := range workdirs {
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			return err
		}
		trusted[real] = map[string]bool{"hasTrustDialogAccepted": true}
	}
	config["projects"] = trusted
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".claude.json"), data, 0o600)
}

// Env returns what the program needs in its environment to use that home and this model
// with an API key, and nothing beyond the loopback. Its JavaScript engine collects garbage
// without helpers and leaves out the optimizing compiler, which a run of seconds does not
// repay: each start takes a quarter less of the processor.
func (s *Server) Env(dir string) []string {
	return []string{
		"CLAUDE_CONFIG_DIR=" + dir,
		"ANTHROPIC_BASE_URL=" + s.URL(),
		"ANTHROPIC_API_KEY=" + key,
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"NO_PROXY=127.0.0.1",
		"BUN_JSC_useConcurrentGC=0",
		"BUN_JSC_useDFGJIT=0",
	}
}

// LoginEnv is Env with a login's token in place of the key, as a subscriber has it: the
// program then says when a used up limit ends.
func (s *Server) LoginEnv(dir string) []string {
	return append(s.Env(dir), "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-loopmodel")
}
