package analyzer

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// summary is the fact about a function of another package of the app.
type summary struct {
	Calls bool   // it makes calls of a run
	Uses  string // what it uses that a workflow must not, such as "time.Now", or ""

	Wrong, Instead string // the advice for Uses
}

// AFact implements analysis.Fact.
func (*summary) AFact() {}

func (s *summary) String() string {
	switch {
	case s.Calls:
		return "makes calls"
	case s.Uses != "":
		return "uses " + s.Uses
	}
	return "makes no calls"
}

// declare notes the functions of a file, and those that are values.
func (c *checker) declare(file *ast.File) {
	called := make(map[*ast.Ident]bool)
	assigned := make(map[*types.Var]int)
	note := func(left *ast.Ident, right ast.Expr) {
		v, _ := c.objectOf(left).(*types.Var)
		if v == nil {
			return
		}
		assigned[v]++
		if lit, ok := ast.Unparen(right).(*ast.FuncLit); ok {
			c.closures[v] = lit
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if fn, ok := c.pass.TypesInfo.Defs[n.Name].(*types.Func); ok {
				c.decls[fn] = n
			}
			c.noteParams(n.Recv, n.Type.Params)
		case *ast.FuncLit:
			c.noteParams(n.Type.Params)
		case *ast.CallExpr:
			called[calledName(n.Fun)] = true
		case *ast.Ident:
			if fn, ok := c.pass.TypesInfo.Uses[n].(*types.Func); ok && !called[n] {
				c.values[fn.Origin()] = true
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if id, ok := ast.Unparen(left).(*ast.Ident); ok {
					note(id, n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if i < len(n.Values) {
					note(id, n.Values[i])
				}
			}
		}
		return true
	})
	for v, times := range assigned {
		if times > 1 {
			delete(c.closures, v)
		}
	}
}

func (c *checker) noteParams(lists ...*ast.FieldList) {
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				c.params[c.pass.TypesInfo.Defs[name]] = true
			}
		}
	}
}

// findSummaries computes the summaries of all functions of the package, and exports them. What a function uses
// matters only in a module of the app: the standard library and a logger may read a clock.
func (c *checker) findSummaries() {
	app := c.pass.Module != nil && c.pass.Module.Path != ""
	for changed := true; changed; {
		changed = false
		for fn, decl := range c.decls {
			if decl.Body == nil {
				continue
			}
			old := c.summaries[fn]
			now := summary{Calls: old.Calls || c.callsRun(decl.Body)}
			if app && !now.Calls && !takesRun(fn.Signature()) && fn.Signature().Results().Len() > 0 {
				now.Uses, now.Wrong, now.Instead = old.Uses, old.Wrong, old.Instead
				if now.Uses == "" {
					now = c.uses(decl.Body)
				}
			}
			if now != old {
				c.summaries[fn], changed = now, true
			}
		}
	}
	for fn := range c.decls {
		s := c.summaries[fn]
		if fn.Exported() && (s != summary{} || takesRun(fn.Signature())) {
			c.pass.ExportObjectFact(fn, &s)
		}
	}
}

// summaryOf returns the summary of a function. Of a function that it does not see it assumes the worst that the
// parameters allow.
func (c *checker) summaryOf(fn *types.Func) (s summary) {
	fn = fn.Origin()
	if c.decls[fn] != nil {
		return c.summaries[fn]
	}
	if !c.pass.ImportObjectFact(fn, &s) {
		s.Calls = takesRun(fn.Signature())
	}
	return s
}

// uses looks for what a workflow must not use. A function literal in it may never run.
func (c *checker) uses(body ast.Node) (s summary) {
	ast.Inspect(body, func(n ast.Node) bool {
		if s.Uses != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			if name, a, found := adviceFor(c.pass.TypesInfo.Uses[n]); found && a != lock {
				s.Uses, s.Wrong, s.Instead = name, a.wrong, a.instead
			} else if fn, ok := c.pass.TypesInfo.Uses[n].(*types.Func); ok {
				of := c.summaryOf(fn)
				s.Uses, s.Wrong, s.Instead = of.Uses, of.Wrong, of.Instead
			}
		}
		return true
	})
	return s
}

// callsRun reports whether code makes calls of a run that it did not get as a parameter of its own.
func (c *checker) callsRun(body ast.Node) (found bool) {
	if c.looking[body] {
		return false // it calls itself
	}
	c.looking[body] = true
	defer delete(c.looking, body)
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return !found && !c.hasRun(n)
		case *ast.CallExpr:
			found = found || c.isRunCall(n)
		}
		return !found
	})
	return found
}

// harmless are the functions of package workflow that take a Run and are allowed in a step.
var harmless = map[string]bool{"ID": true, "Key": true, "Run": true, "In": true}

// mayStep reports whether the function of a step may make a call of the run: append to a stream.
func mayStep(callee types.Object) bool {
	fn, ok := callee.(*types.Func)
	return ok && isIn(fn, workflowPath) && fn.Name() == "Append"
}

// isRunCall reports whether a call makes calls of a run.
func (c *checker) isRunCall(call *ast.CallExpr) bool {
	if lit, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok {
		return c.callsRun(lit.Body)
	}
	switch callee := typeutil.Callee(c.pass.TypesInfo, call).(type) {
	case *types.Func:
		sig := callee.Signature()
		if isIn(callee, workflowPath) {
			ofRun := sig.Recv() != nil && isRun(sig.Recv().Type())
			return (ofRun || takesRun(sig)) && !harmless[callee.Name()]
		}
		return c.summaryOf(callee).Calls
	case *types.Var:
		if lit := c.closures[callee]; lit != nil {
			return c.callsRun(lit.Body)
		}
	}
	t := c.pass.TypesInfo.Types[call.Fun]
	sig, ok := t.Type.Underlying().(*types.Signature)
	return ok && !t.IsType() && takesRun(sig)
}

func (c *checker) hasRun(lit *ast.FuncLit) bool {
	sig, ok := c.pass.TypesInfo.TypeOf(lit).(*types.Signature)
	return ok && takesRun(sig)
}

// objectOf returns what an identifier defines or uses.
func (c *checker) objectOf(id *ast.Ident) types.Object { return c.pass.TypesInfo.ObjectOf(id) }

// calledName returns the identifier that a call names, or nil.
func calledName(fun ast.Expr) *ast.Ident {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	case *ast.IndexExpr:
		return calledName(fun.X)
	case *ast.IndexListExpr:
		return calledName(fun.X)
	}
	return nil
}
