package planted

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// parsedPackage is the source of a package.
type parsedPackage struct {
	name    string
	set     *token.FileSet
	sources map[string][]byte          // by path
	bodies  map[string][]*ast.FuncDecl // by "function" or "Type.method"
}

// parsePackage parses the files of a folder that this machine builds.
func parsePackage(dir string) (*parsedPackage, error) {
	built, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	p := &parsedPackage{name: built.Name, set: token.NewFileSet(), sources: make(map[string][]byte), bodies: make(map[string][]*ast.FuncDecl)}
	for _, name := range built.GoFiles {
		file := filepath.Join(dir, name)
		if p.sources[file], err = os.ReadFile(file); err != nil {
			return nil, err
		}
		if err := p.parse(file); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *parsedPackage) parse(file string) error {
	tree, err := parser.ParseFile(p.set, file, p.sources[file], parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			name := receiver(f) + f.Name.Name
			p.bodies[name] = append(p.bodies[name], f)
		}
	}
	return nil
}

// receiver is "Type." for a method and "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" { // type parameters come after it
			name = id.Name + "."
		}
		return name == ""
	})
	return name
}

// locate finds the one place of an edit.
func (p *parsedPackage) locate(e edit) (file string, c change, err error) {
	functions := p.bodies[path.Base(e.In)]
	if len(functions) != 1 {
		return "", c, fmt.Errorf("fault %q: %d functions are named %s; adapt the fault to the source", e.fault, len(functions), e.In)
	}
	f := functions[0]
	file = p.set.Position(f.Pos()).Filename
	source, want := p.sources[file], canonical([]byte(e.Old))
	var found []span
	for s := range p.spans(f.Body) {
		if canonical(source[s.start:s.end]) == want {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return "", c, fmt.Errorf("fault %q: %s has %d places like this, not one; adapt the fault to the source: %s", e.fault, e.In, len(found), e.Old)
	}
	return file, change{e, found[0].start, found[0].end}, nil
}

// span is the place of an expression or of statements in a file.
type span struct{ start, end int }

// spans returns the spans of all expressions of a body, and of all sequences of statements.
func (p *parsedPackage) spans(body *ast.BlockStmt) map[span]bool {
	all := make(map[span]bool)
	add := func(from, to ast.Node) {
		all[span{p.set.Position(from.Pos()).Offset, p.set.Position(to.End()).Offset}] = true
	}
	ast.Inspect(body, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case ast.Expr:
			add(n, n)
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for i := range list {
			for j := i; j < len(list); j++ {
				add(list[i], list[j])
			}
		}
		return true
	})
	return all
}

// canonical is Go text without comments, and with the same space everywhere.
func canonical(text []byte) string {
	var words []string
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(text)), text, nil, 0)
	for {
		_, tok, word := s.Scan()
		if word == "" || tok == token.SEMICOLON { // the semicolon may stand for the end of a line
			word = tok.String()
		}
		if n := len(words) - 1; n >= 0 && (words[n] == ";" || words[n] == ",") {
			switch tok {
			case token.RBRACE, token.RPAREN, token.EOF: // a separator before them means nothing
				words = words[:n]
			}
		}
		if tok == token.EOF {
			return strings.Join(words, " ")
		}
		words = append(words, word)
	}
}
