package dashboard

import (
	"strings"
	"sync"
)

// A language is what is known of the languages that are written alike.
type language struct {
	comments []string // that end with the line
	quotes   []quote  // the longer ones first
	keywords map[string]bool
	anyCase  bool // of keywords
}

// A quote is a string, or a comment with an end of its own.
type quote struct {
	begin, end string
	comment    bool
	lines      bool // it may go on over lines
	raw        bool // a backslash is a character like any
}

var (
	double = quote{begin: `"`, end: `"`}
	single = quote{begin: "'", end: "'"}
	block  = quote{begin: "/*", end: "*/", comment: true, lines: true, raw: true}
	markup = quote{begin: "<!--", end: "-->", comment: true, lines: true, raw: true}
	tick   = quote{begin: "`", end: "`", lines: true}
)

func words(s string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// A table has the languages by a file's extension and by its name.
type table struct{ byExtension, byName map[string]*language }

// languages is made when the first file is shown: most of netsky's processes show none.
var languages = sync.OnceValue(func() (t table) {
	golang := &language{comments: []string{"//"}, quotes: []quote{block, double, single, {begin: "`", end: "`", lines: true, raw: true}},
		keywords: words(`break case chan const continue default defer else fallthrough for func go goto if import interface map
			package range return select struct switch type var nil true false iota`)}
	clike := &language{comments: []string{"//"}, quotes: []quote{block, double, single},
		keywords: words(`abstract alignas alignof as auto base bool boolean break byte case catch char class const constexpr continue
			crate default defer delete do double dyn else enum explicit export extends extension extern false final finally float
			fn for foreach friend fun func global goto guard if impl implements import in include init inline instanceof int
			interface internal is let lateinit lock long loop match mod move mut mutable namespace new nil noexcept null nullptr
			object open operator out override package params private protected protocol pub public readonly ref register return
			sealed self short signed sizeof static struct super suspend switch template this throw throws trait transient true
			try type typedef typename typeof union unsafe unsigned use using val var virtual void volatile when where while yield`)}
	script := &language{comments: []string{"//"}, quotes: []quote{block, double, single, tick},
		keywords: words(`abstract any as async await boolean break case catch class const constructor continue debugger declare default
			delete do else enum export extends false finally for from function get if implements import in instanceof interface
			is keyof let namespace never new null number object of private protected public readonly return satisfies set static
			string super switch symbol this throw true try type typeof undefined unknown var void while with yield`)}
	python := &language{comments: []string{"#"}, quotes: []quote{
		{begin: `"""`, end: `"""`, lines: true}, {begin: "'''", end: "'''", lines: true}, double, single},
		keywords: words(`and as assert async await break case class continue def del elif else except False finally for from global if
			import in is lambda match None nonlocal not or pass raise return True try while with yield`)}
	shell := &language{comments: []string{"#"}, quotes: []quote{double, {begin: "'", end: "'", raw: true}},
		keywords: words(`begin case do done elif else end esac exit export fi for function if in local return select set shift
			source then trap unset until while and alias break class def defined elsif ensure false module my next nil not or our
			redo require rescue retry self sub super true undef unless use when yield COPY CMD ENTRYPOINT ENV EXPOSE FROM RUN
			WORKDIR`)}
	values := &language{comments: []string{"#"}, quotes: []quote{double, {begin: "'", end: "'", raw: true}}, keywords: words("true false null yes no on off")}
	json := &language{comments: []string{"//"}, quotes: []quote{block, double}, keywords: words("true false null")}
	sql := &language{comments: []string{"--"}, quotes: []quote{block, {begin: "'", end: "'", lines: true, raw: true}, {begin: `"`, end: `"`, raw: true}}, anyCase: true,
		keywords: words(`add all alter and as asc begin between by case cast check collate column commit constraint create cross
			database default delete desc distinct drop else end except exists explain foreign from full group having if in index
			inner insert intersect into is join key left like limit not null offset on or order outer primary references replace
			returning right rollback select set table then transaction trigger union unique update using values view when where
			with`)}
	dashes := &language{comments: []string{"--"}, quotes: []quote{{begin: "{-", end: "-}", comment: true, lines: true, raw: true}, double},
		keywords: words(`and break case class data deriving do else elseif end false for function goto if import in infix instance
			let local module newtype nil not of or repeat return then true type until where while`)}
	style := &language{quotes: []quote{block, double, single}}
	tags := &language{quotes: []quote{markup, double}}
	lisp := &language{comments: []string{";"}, quotes: []quote{double}, keywords: words("def defn defun defmacro fn if let cond lambda nil true false ns require")}
	t.byExtension = map[string]*language{
		".go": golang,
		".c":  clike, ".h": clike, ".cc": clike, ".cpp": clike, ".cxx": clike, ".hpp": clike, ".cs": clike, ".java": clike, ".kt": clike,
		".kts": clike, ".scala": clike, ".swift": clike, ".rs": clike, ".m": clike, ".mm": clike, ".dart": clike, ".php": clike,
		".proto": clike, ".zig": clike, ".groovy": clike, ".gradle": clike,
		".js": script, ".mjs": script, ".cjs": script, ".jsx": script, ".ts": script, ".mts": script, ".cts": script, ".tsx": script,
		".py": python, ".pyi": python, ".bzl": python,
		".sh": shell, ".bash": shell, ".zsh": shell, ".fish": shell, ".rb": shell, ".pl": shell, ".pm": shell, ".r": shell, ".mk": shell,
		".cmake": shell, ".ex": shell, ".exs": shell, ".jl": shell, ".nix": shell, ".tf": shell,
		".yaml": values, ".yml": values, ".toml": values, ".ini": values, ".cfg": values, ".conf": values, ".properties": values,
		".json": json, ".jsonc": json, ".json5": json,
		".sql": sql, ".lua": dashes, ".hs": dashes, ".elm": dashes,
		".css": style, ".scss": style, ".less": style,
		".html": tags, ".htm": tags, ".xml": tags, ".svg": tags, ".vue": tags, ".svelte": tags,
		".clj": lisp, ".cljs": lisp, ".el": lisp, ".lisp": lisp, ".scm": lisp,
	}

	t.byName = map[string]*language{
		"makefile": shell, "dockerfile": shell, "containerfile": shell, "rakefile": shell, "gemfile": shell, "justfile": shell,
		"cmakelists.txt": shell, "go.mod": golang, "build.bazel": python, ".gitignore": values, ".gitattributes": values, ".env": values,
	}
	return t
})
