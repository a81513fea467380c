// Package analyzer finds code in workflows that may behave differently when a run continues.
//
// Workflow code is a function that takes a *workflow.Run, such as the function of workflow.Define, workflow.Go, or
// workflow.Each, and what it calls with that Run. The functions of steps, Undo, and Decide are not workflow code: they
// may do anything except make calls of the run. A function literal that is passed to any other function may be a step,
// so the analyzer does not read it unless it makes calls of a run.
//
// A comment "//workflowvet:ok reason" at the end of a line silences the reports for that line.
package analyzer

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports code in workflows that may behave differently when a run continues.
var Analyzer = &analysis.Analyzer{
	Name:      "workflowvet",
	Doc:       "report code in workflows that does not do the same when a run continues",
	URL:       "https://github.com/gopawl/pawl/blob/main/docs/guide/workflow-mistakes.md",
	Run:       run,
	FactTypes: []analysis.Fact{new(summary)},
}

// checker checks one package.
type checker struct {
	pass      *analysis.Pass
	decls     map[*types.Func]*ast.FuncDecl
	values    map[*types.Func]bool        // functions that are given away, not only called
	closures  map[*types.Var]*ast.FuncLit // variables that never hold another function
	params    map[types.Object]bool       // parameters and receivers, not named results
	summaries map[*types.Func]summary
	looking   map[ast.Node]bool // closures whose calls are being searched

	visited  map[ast.Node]bool
	silenced map[place]bool
	reported map[report]bool
}

// place is a line of a file.
type place struct {
	file string
	line int
}

type report struct {
	pos  token.Pos
	text string
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Module != nil && pass.Module.Version != "" || pass.Pkg.Path() == workflowPath {
		return nil, nil // the code of others
	}
	c := &checker{
		pass: pass, decls: make(map[*types.Func]*ast.FuncDecl), values: make(map[*types.Func]bool),
		closures: make(map[*types.Var]*ast.FuncLit), params: make(map[types.Object]bool),
		summaries: make(map[*types.Func]summary), looking: make(map[ast.Node]bool),
		visited: make(map[ast.Node]bool), silenced: make(map[place]bool), reported: make(map[report]bool),
	}
	for _, file := range pass.Files {
		c.declare(file)
		c.readComments(file)
	}
	c.findSummaries()
	for _, file := range pass.Files {
		c.findRoots(file)
	}
	return nil, nil
}

// findRoots walks the outermost functions of a file that are workflow code.
func (c *checker) findRoots(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			fn, _ := c.pass.TypesInfo.Defs[n.Name].(*types.Func)
			if n.Body != nil && fn != nil && (c.summaries[fn].Calls || takesRun(fn.Signature()) && c.values[fn]) {
				c.root(n, n.Body)
				return false
			}
			// A function that only steps call is none. Nor are its literals, unless they take a Run.
		case *ast.FuncLit:
			if c.hasRun(n) {
				c.root(n, n.Body)
				return false
			}
		}
		return true
	})
}

// root walks an outermost function once.
func (c *checker) root(fn ast.Node, body *ast.BlockStmt) {
	if !c.visited[fn] {
		c.visited[fn] = true
		c.walk(body, scope{root: fn, own: fn})
	}
}

// report reports what is wrong at a node, unless a comment silences its line.
func (c *checker) report(n ast.Node, format string, args ...any) {
	r := report{n.Pos(), fmt.Sprintf(format, args...)}
	at := c.pass.Fset.Position(r.pos)
	if c.silenced[place{at.Filename, at.Line}] || c.reported[r] {
		return
	}
	c.reported[r] = true
	c.pass.Report(analysis.Diagnostic{Pos: r.pos, End: n.End(), Message: r.text})
}
