package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// A type with more methods, or with methods in more files, is several objects under one name.
const mostMethods, mostFiles = 40, 6

func TestTypes(t *testing.T) {
	methods, files := make(map[string]int), make(map[string][]string)
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "testdata" {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if of := receiver(d); of != "" {
				of = strings.TrimPrefix(filepath.Dir(name), "../") + " " + of
				if methods[of]++; !slices.Contains(files[of], name) {
					files[of] = append(files[of], name)
				}
			}
		}
		return nil
	})
	testworld.Must(t, err)
	for of, n := range methods {
		if n > mostMethods || len(files[of]) > mostFiles {
			t.Errorf("%s: %d methods in %d files; at most %d in %d are allowed: make an object of a part of it", of, n, len(files[of]), mostMethods, mostFiles)
		}
	}
}

// receiver returns the name of the type that a method is of, "" for what is no method.
func receiver(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return ""
	}
	for e := f.Recv.List[0].Type; ; {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr: // of a generic type
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
