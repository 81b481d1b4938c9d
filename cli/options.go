package cli

import "netsky/cli/line"

// optionRules are the options that mean something only with another, or not beside it: a
// verb that ignored one would do something else than it was told.
var optionRules = map[string][]line.Rule{
	"status": {
		{Option: "width", Needs: "line"}, {Option: "line", Not: "json"}, {Option: "line", Not: "watch"},
		{Option: "line", Not: "verbose"}, {Option: "watch", Not: "json"},
	},
	"peek":         {{Option: "follow", Not: "json"}},
	"inbox":        {{Option: "cursor", Needs: "sent"}},
	"channel send": {{Option: "timeout", Needs: "wait"}},
	"prompt":       {{Option: "layers", Not: "startup"}},
	"codex": {
		{Option: "headless", Needs: "serve"}, {Option: "serve", Not: "prompt"}, {Option: "serve", Not: "drain"},
	},
	"dashboard": {
		{Option: "rotate", Not: "browsers"}, {Option: "rotate", Not: "sign-out"}, {Option: "browsers", Not: "sign-out"},
		{Option: "sign-out", Not: "json"},
	},
}
