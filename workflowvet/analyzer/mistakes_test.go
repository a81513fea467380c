package analyzer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/gopawl/pawl/workflowvet/analyzer"
)

// Rule: of the mistakes that TestMistakes of package workflowtest makes, the analyzer finds those that the page about
// mistakes says, and nothing else in that package. Each of them is silenced there.
func TestFindsMistakes(t *testing.T) {
	file, err := filepath.Abs("../../workflow/workflowtest/mistakes_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if diagnostics := analyze(t, file, read(t, file)); len(diagnostics) > 0 {
		t.Errorf("not silenced: %v", diagnostics)
	}
	loud := strings.ReplaceAll(read(t, file), "//workflowvet:ok a mistake", "// a mistake")
	diagnostics := analyze(t, file, loud)
	if len(diagnostics) == 0 {
		t.Fatal("no mistake was found")
	}
	page := read(t, "../../docs/guide/workflow-mistakes.md")
	rows := mistakes(t, file, loud)
	if len(rows) < 20 {
		t.Fatalf("%d mistakes", len(rows))
	}
	for _, row := range rows {
		found := slices.ContainsFunc(row.functions, func(name string) bool { return len(diagnostics[name]) > 0 })
		if found != strings.Contains(page, "\n| "+row.what+" | "+row.when(page)+" | yes |\n") {
			t.Errorf("%s: found is %v, and the page says something else", row.what, found)
		}
		for _, name := range row.functions {
			delete(diagnostics, name)
		}
	}
	if len(diagnostics) > 0 {
		t.Errorf("in no row: %v", diagnostics)
	}
}

// row is a mistake, and the functions that make it.
type row struct {
	what      string
	functions []string
}

// when returns the cells between the mistake and the last one of its row.
func (r *row) when(page string) string {
	_, line, _ := strings.Cut(page, "\n| "+r.what+" | ")
	line, _, _ = strings.Cut(line, "\n")
	cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
	return strings.Join(cells[:len(cells)-1], " | ")
}

// mistakes reads the rows of the variable mistakes. A function may be given to another one.
func mistakes(t *testing.T, file, content string) (rows []row) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, content, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR || gen.Specs[0].(*ast.ValueSpec).Names[0].Name != "mistakes" {
			continue
		}
		for _, element := range gen.Specs[0].(*ast.ValueSpec).Values[0].(*ast.CompositeLit).Elts {
			cells := element.(*ast.CompositeLit).Elts
			what, err := strconv.Unquote(cells[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			r := row{what: what}
			ast.Inspect(cells[3], func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					r.functions = append(r.functions, id.Name)
				}
				return true
			})
			rows = append(rows, r)
		}
	}
	return rows
}

// analyze returns the diagnostics in the package of a file that has some content, by the function that they are in.
func analyze(t *testing.T, file, content string) map[string][]string {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax | packages.NeedModule, Tests: true, Dir: filepath.Dir(file),
		Overlay: map[string][]byte{file: []byte(content)},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(loaded) > 0 {
		t.Fatal("the package does not compile")
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{analyzer.Analyzer}, loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, action := range graph.Roots {
		for _, d := range action.Diagnostics {
			name := functionAt(action.Package, d.Pos)
			found[name] = append(found[name], d.Message)
		}
	}
	return found
}

// functionAt returns the declared function that a position is in.
func functionAt(p *packages.Package, pos token.Pos) string {
	for _, file := range p.Syntax {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Pos() <= pos && pos < fn.End() {
				return fn.Name.Name
			}
		}
	}
	return p.Fset.Position(pos).String()
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
