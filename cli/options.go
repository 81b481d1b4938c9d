package cli

import "netsky/cli/spell"

// optionRules are the options that mean something only with another, or not beside it: a
// verb that ignored one would do something else than it was told.
var optionRules = map[string][]spell.Rule{
	"status": {
		{Option: "width", Needs: "line"}, {Option: "line", Not: "json"}, {Option: "line", Not: "watch"},
		{Option: "line", Not: "verbose"}, {Option: "watch", Not: "json"},
	},
	"land": {
		{Option: "squash", Not: "rebase"}, {Option: "squash", Not: "merge"}, {Option: "rebase", Not: "merge"},
		{Option: "pr", Not: "squash"}, {Option: "pr", Not: "rebase"}, {Option: "pr", Not: "merge"}, {Option: "all", Not: "message"}, {Option: "yes", Needs: "all"},
	},
	"work": {{Option: "watch", Not: "json"}},
	"diff": {
		{Option: "stat", Not: "json"}, {Option: "name-only", Not: "json"}, {Option: "stat", Not: "name-only"},
		{Option: "comment", Not: "since-landed"}, {Option: "comment", Not: "stat"}, {Option: "comment", Not: "name-only"}, {Option: "comment", Not: "comments"}, {Option: "comment", Not: "drop"}, {Option: "comment", Not: "send"},
		{Option: "comments", Not: "drop"}, {Option: "comments", Not: "send"}, {Option: "drop", Not: "send"}, {Option: "drop", Not: "json"},
		{Option: "comments", Not: "stat"}, {Option: "comments", Not: "name-only"}, {Option: "comments", Not: "since-landed"},
		{Option: "drop", Not: "stat"}, {Option: "drop", Not: "name-only"}, {Option: "drop", Not: "since-landed"},
		{Option: "send", Not: "stat"}, {Option: "send", Not: "name-only"}, {Option: "send", Not: "since-landed"},
	},
	"peek":         {{Option: "follow", Not: "json"}},
	"inbox":        {{Option: "cursor", Needs: "sent"}},
	"send":         {{Option: "timeout", Needs: "wait"}},
	"channel send": {{Option: "timeout", Needs: "wait"}},
	"task add":     {{Option: "file", Not: "body"}},
	"task ls":      {{Option: "all", Not: "limit"}},
	"prompt":       {{Option: "layers", Not: "startup"}},
	"codex": {
		{Option: "headless", Needs: "serve"}, {Option: "serve", Not: "prompt"}, {Option: "serve", Not: "drain"},
	},
	"dashboard": {
		{Option: "rotate", Not: "browsers"}, {Option: "rotate", Not: "sign-out"}, {Option: "browsers", Not: "sign-out"},
		{Option: "sign-out", Not: "json"},
	},
}
