package bridge_test

import (
	"log/slog"
	"strings"
	"testing"

	"netsky/fleet/bridge"
	"netsky/internal/testworld"
	"netsky/store"
)

// A picture is converted by the program that macOS has for it, if it is there; what it says is told.
func TestConvert(t *testing.T) {
	t.Parallel()
	convert := func(script string) (string, error) {
		bin := t.TempDir()
		if script != "" {
			testworld.Program(t, bin+"/sips", script)
		}
		o := bridge.Phone{Home: testworld.FastHome(t), Env: []string{"PATH=" + bin + ":/usr/bin-none"}}.
			Options(nil, nil, func() *store.DB { return nil }, nil, slog.New(slog.DiscardHandler))
		jpeg, err := o.Convert(t.Context(), []byte("HEIC"))
		return string(jpeg), err
	}
	testworld.Equal(t, testworld.Got(convert(`#!/bin/sh
[ "$1 $2 $3 $5" = "-s format jpeg --out" ] && /bin/cat "$4" >"$6" && echo " as JPEG" >>"$6"
`))(t), "HEIC as JPEG\n")
	for script, want := range map[string]string{
		"": "no program that converts HEIC is on PATH",
		"#!/bin/sh\necho not a picture >&2\nexit 1\n": "sips: exit status 1: not a picture",
		"#!/bin/sh\nexit 0\n":                         "no such file",
		"#!/bin/sh\n: >\"$6\"\n":                      "sips has made no usable picture",
	} {
		if jpeg, err := convert(script); jpeg != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", script, jpeg, err, want)
		}
	}
}
