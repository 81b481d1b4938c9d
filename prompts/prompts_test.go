package prompts_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/prompts"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

func input(id agent.ID, addenda ...prompts.Layer) prompts.Input {
	home, err := home.At("/home/lee/.netsky")
	if err != nil {
		panic(err)
	}
	return prompts.Input{Agent: id, Home: home, Dir: "/src/shop", Owner: "Lee", Machine: "mill", Runtime: "claude", Addenda: addenda}
}

// TestGolden compares what each role is told with testdata, where it can be
// read as the agent reads it. A change there is a change of behaviour.
func TestGolden(t *testing.T) {
	for _, id := range []agent.ID{agent.Root, agent.Clone(1), agent.Infinity} {
		in := input(id, prompts.Layer{Name: "0.md", Text: "Speak of the shop as \"the shop\".\n"})
		prompt, err := prompts.Render(in)
		testworld.Must(t, err)
		startup, err := prompts.Startup(in)
		testworld.Must(t, err)
		golden(t, string(id)+".md", prompt)
		golden(t, string(id)+".startup.md", startup)
	}
	in := input("agent1")
	in.Dir = "/home/lee/.netsky/workspaces/agent1/web"
	in.Tree = prompts.Worktree{Root: "/home/lee/.netsky/workspaces/agent1", Main: "/src/shop", Branch: "netsky/agent1", Base: "main"}
	prompt, err := prompts.Render(in)
	testworld.Must(t, err)
	golden(t, "agent1.worktree.md", prompt)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		testworld.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	testworld.Must(t, err)
	if got != string(want) {
		t.Errorf("%s differs from what is rendered now; if that is meant, run the test with -update and read the difference", path)
	}
}

func TestLayersAreAppendedInOrder(t *testing.T) {
	in := input(agent.Clone(12),
		prompts.Layer{Name: "0.md", Text: "\n\nfirst {{ n }}\r\nof two\n\n"},
		prompts.Layer{Name: "empty.md", Text: " \n\n"},
		prompts.Layer{Name: "12.md", Text: "\ufeff    second"})
	layers, err := prompts.Layers(in)
	testworld.Must(t, err)
	var names, texts []string
	for _, l := range layers {
		names, texts = append(names, l.Name), append(texts, l.Text)
	}
	if got, want := strings.Join(names, " "), "base.md claude.md tools.md clone.md shared.md 0.md 12.md"; got != want {
		t.Errorf("layers = %s, want %s", got, want)
	}
	prompt, err := prompts.Render(in)
	testworld.Must(t, err)
	if want := strings.Join(texts, "\n\n---\n\n") + "\n"; prompt != want {
		t.Error("Render is not its layers with the separator between them")
	}
	if want := "\n\n---\n\nfirst 12\nof two\n\n---\n\n    second\n"; !strings.HasSuffix(prompt, want) {
		t.Errorf("the prompt ends in %q, want %q", prompt[len(prompt)-len(want):], want)
	}
	if in.Addenda[0].Text != "\n\nfirst {{ n }}\r\nof two\n\n" {
		t.Error("Layers changed its input")
	}
}

func TestPlaceholders(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"number", "{{ n }}", "3"},
		{"name", "{{ agent_name }}", "agent3"},
		{"directory", "{{ cwd }}", "/src/shop"},
		{"home", "{{ home }}", "/home/lee/.netsky"},
		{"workspace", "{{ workspace }}", "/home/lee/.netsky/workspaces/agent3"},
		{"prompt file", "{{ prompt_file }}", "/home/lee/.netsky/state/prompts/agent3.md"},
		{"owner", "{{ owner }}", "Lee"},
		{"machine", "{{ machine }}", "mill"},
		{"runtime", "{{ runtime }}", "claude"},
		{"no blanks", "{{n}}", "3"},
		{"many blanks", "{{  n \t}}", "3"},
		{"two in a line", "{{ n }}{{ n }} {{ n }}", "33 3"},
		{"literal", `{{ "{{" }} n }}`, "{{ n }}"},
		{"literal without blanks", `{{"{{"}}`, "{{"},
		{"single braces", "{ n } } }}", "{ n } } }}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := addendum(t, test.text); got != test.want {
				t.Errorf("Layers(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

// addendum is what an addendum of agent3 with that text becomes.
func addendum(t *testing.T, text string) string {
	t.Helper()
	layers, err := prompts.Layers(input(agent.Clone(3), prompts.Layer{Name: "a.md", Text: text}))
	testworld.Must(t, err)
	return layers[len(layers)-1].Text
}

func TestStrictness(t *testing.T) {
	for _, test := range []struct {
		name, text, words string
		kind              error
	}{
		{"unknown", "one\ntwo {{ user }}", `a.md, line 2: "{{ user }}" is not a known placeholder`, prompts.ErrPlaceholder},
		{"line counted from the top", "\n\n\n{{ user }}", "a.md, line 4: ", prompts.ErrPlaceholder},
		{"capital", "{{ N }}", `"{{ N }}"`, prompts.ErrPlaceholder},
		{"empty", "{{ }}", `"{{ }}"`, prompts.ErrPlaceholder},
		{"open", "{{ n", `"{{ n"`, prompts.ErrPlaceholder},
		{"open at the end", "text {{", `"{{"`, prompts.ErrPlaceholder},
		{"one brace closes", "{{ n }", `"{{ n }"`, prompts.ErrPlaceholder},
		{"over two lines", "{{ n\n}}", `"{{ n"`, prompts.ErrPlaceholder},
		{"three braces", "{{{ n }}}", `"{{{ n }}"`, prompts.ErrPlaceholder},
		{"something beside", "{{ n n }}", `"{{ n n }}"`, prompts.ErrPlaceholder},
		{"nested", "{{ {{ n }} }}", `"{{ {{ n }}"`, prompts.ErrPlaceholder},
		{"another literal", `{{ "}}" }}`, `"{{ \"}}"`, prompts.ErrPlaceholder},
		{"long", "{{ " + strings.Repeat("é", 100) + " }}", `"{{ ` + strings.Repeat("é", 37) + `…"`, prompts.ErrPlaceholder},
		{"escape sequences are shown as such", "{{ \x1b[2J }}", `"{{ \x1b[2J }}"`, prompts.ErrPlaceholder},
		{"says what is known", "{{ x }}", `known are agent_name, base, branch, cwd, home, machine, main, n, owner, prompt_file, runtime, workspace, worktree and {{ "{{" }}`, prompts.ErrPlaceholder},
		{"NUL", "a\nb\x00", "a.md, line 2: byte 0x00", prompts.ErrText},
		{"Latin-1", "caf\xe9", "a.md, line 1: byte 0xe9", prompts.ErrText},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input(agent.Clone(3), prompts.Layer{Name: "good.md", Text: "{{ n }}"}, prompts.Layer{Name: "a.md", Text: test.text})
			prompt, err := prompts.Render(in)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("Render = %q, want an error with %q", err, test.words)
			}
			if prompt != "" {
				t.Error("Render gave a text beside its error")
			}
		})
	}
}

func TestInput(t *testing.T) {
	good := input(agent.Root)
	for _, test := range []struct {
		name  string
		in    prompts.Input
		words string
	}{
		{"owner", prompts.Input{Agent: agent.Owner, Home: good.Home, Dir: "/"}, `"owner": not an agent`},
		{"nobody", prompts.Input{Home: good.Home, Dir: "/"}, `"": not an agent`},
		{"no home", prompts.Input{Agent: agent.Root, Dir: "/"}, "agent0: no home directory"},
		{"no directory", prompts.Input{Agent: agent.Root, Home: good.Home}, "agent0: no working directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, render := range map[string]func(prompts.Input) (string, error){"Render": prompts.Render, "Startup": prompts.Startup} {
				if _, err := render(test.in); err == nil || !strings.Contains(err.Error(), test.words) {
					t.Errorf("%s = %v, want an error with %q", name, err, test.words)
				}
			}
		})
	}
	prompt, err := prompts.Render(prompts.Input{Agent: agent.Root, Home: good.Home, Dir: "/"})
	if err != nil || !strings.Contains(prompt, "the owner, the person all of this is for") {
		t.Errorf("without names: %v, %q", err, prompt)
	}
}

func TestValuesAreData(t *testing.T) {
	for _, test := range []struct{ name, dir, want string }{
		{"braces", "/src/{{ n }}/{{ x", "/src/{{ n }}/{{ x"},
		{"blank at the end", "/src ", "/src "},
		{"quotes", `/it's "it"`, `/it's "it"`},
		{"a line of its own", "/src\n## New rules", `"/src\n## New rules"`},
		{"line separator", "/src\u2028x", `"/src\u2028x"`},
		{"escape", "/\x1b[2J", `"/\x1b[2J"`},
		{"no UTF-8", "/caf\xe9", `"/caf\xe9"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input(agent.Root, prompts.Layer{Name: "a.md", Text: "{{ cwd }}"})
			in.Dir = test.dir
			layers, err := prompts.Layers(in)
			testworld.Must(t, err)
			if got := layers[len(layers)-1].Text; got != test.want {
				t.Errorf("{{ cwd }} of %q = %q, want %q", test.dir, got, test.want)
			}
		})
	}
}

// A model finds what came with a message where the prompt says.
func TestPromptNamesTheMailbox(t *testing.T) {
	for _, id := range []agent.ID{agent.Root, agent.Clone(1), agent.Infinity} {
		in := input(id)
		prompt, err := prompts.Render(in)
		testworld.Must(t, err)
		if want := "They are below " + in.Home.Path(home.Mailbox(id)) + ",\n"; !strings.Contains(prompt, want) {
			t.Errorf("%s is not told %q", id, want)
		}
	}
}

// TestPromptNamesOnlyVerbsThatExist keeps the texts honest.
func TestPromptNamesOnlyVerbsThatExist(t *testing.T) {
	verbs := "up down agent attach status peek show ask inbox reply channel prompt log daemon demo cron loop task"
	for _, id := range []agent.ID{agent.Root, agent.Clone(1), agent.Infinity} {
		prompt, err := prompts.Render(input(id))
		testworld.Must(t, err)
		for _, after := range strings.Split(prompt, "`netsky ")[1:] {
			verb := strings.FieldsFunc(after, func(r rune) bool { return r == ' ' || r == '`' || r == '\n' })[0]
			if !strings.Contains(" "+verbs+" ", " "+verb+" ") {
				t.Errorf("%s is told of `netsky %s`", id, verb)
			}
		}
	}
}

// FuzzRender gives any text as an addendum and any directory. What it accepts
// holds no placeholder any more, and what was put in stands there untouched.
func FuzzRender(f *testing.F) {
	for _, text := range []string{"", "plain", "{{ n }}", "{{cwd}}", `{{ "{{" }} n }}`, "{{ x }}", "{{", "}}{{ n }}{{", "{{ {{ n }} }}", "\r\n{{ cwd }}\n", "\x00", "\xff"} {
		f.Add(text, "/src")
		f.Add(text, "/{{ n }}")
	}
	f.Fuzz(func(t *testing.T, text, dir string) {
		const mark = "\uE000directory\uE000"
		if dir == "" || strings.Contains(text, mark) || strings.Contains(dir, mark) {
			return
		}
		in := input(agent.Clone(3), prompts.Layer{Name: "a.md", Text: text})
		in.Dir = mark
		marked, err := prompts.Render(in)
		in.Dir = dir
		got, again := prompts.Render(in)
		if (err == nil) != (again == nil) {
			t.Fatalf("the directory decides whether the text is right: %v, %v", err, again)
		}
		if err != nil {
			if !errors.Is(err, prompts.ErrPlaceholder) && !errors.Is(err, prompts.ErrText) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Error("the prompt is not text")
		}
		if !strings.Contains(text, `"{{"`) && strings.Contains(marked, "{{") {
			t.Errorf("braces are left of %q", text)
		}
		in.Addenda[0].Text = "{{ cwd }}"
		layers, err := prompts.Layers(in)
		testworld.Must(t, err)
		value := layers[len(layers)-1].Text
		if want := strings.ReplaceAll(marked, mark, value); got != want {
			t.Errorf("Render with %q = %q, want %q", dir, got, want)
		}
	})
}

// What a runtime has of its own is told to those who run on it, and to no other.
func TestLayersOfARuntime(t *testing.T) {
	for runtime, want := range map[string]string{
		"claude": "base.md claude.md tools.md agent0.md",
		"codex":  "base.md tools.md agent0.md",
		"demo":   "base.md agent0.md",
		"gemini": "base.md agent0.md",
	} {
		in := input(agent.Root)
		in.Runtime, in.Addenda = runtime, nil
		layers, err := prompts.Layers(in)
		testworld.Must(t, err)
		var names []string
		for _, l := range layers {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("layers on %s = %s, want %s", runtime, got, want)
		}
	}
}
