package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// scope is where code stands.
type scope struct {
	root     ast.Node              // the outermost function of the workflow code
	own      ast.Node              // the function whose Run its calls take: the root, or a branch
	step     *ast.FuncLit          // the function of a step, or nil
	assigned map[types.Object]bool // variables that the statement with the step assigns
	sleep    bool                  // the arguments of a sleep: its end is stored, so a clock does no harm
}

// walk checks workflow code, or the function of a step.
func (c *checker) walk(n ast.Node, s scope) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			c.literal(n, s)
			return false
		case *ast.CallExpr:
			c.call(n, s)
			return false
		case *ast.AssignStmt:
			return c.assignment(n, s)
		case *ast.IncDecStmt:
			c.write(n, n.X, s)
		case *ast.RangeStmt:
			c.rangeOver(n, s)
			if n.Tok == token.ASSIGN {
				c.write(n, n.Key, s)
				c.write(n, n.Value, s)
			}
		default:
			if s.step == nil {
				return c.statement(n, s)
			}
		}
		return true
	})
}

// statement checks what only workflow code must not have. It reports whether to look inside.
func (c *checker) statement(n ast.Node, s scope) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n, "a goroutine in a workflow runs beside it in another order each time; begin a branch with workflow.Go")
		return false
	case *ast.SelectStmt:
		c.report(n, "a select in a workflow takes another case when the run continues; use workflow.Select")
		return false
	case *ast.SendStmt:
		c.report(n, "a send on a channel keeps the run from being suspended, and is made again when it continues; return the value, or send a signal")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.report(n, "a receive from a channel keeps the run from being suspended; wait for a branch or a signal")
		}
	case *ast.ExprStmt:
		c.dropped(n.X)
	case *ast.DeferStmt:
		c.dropped(n.Call)
	case *ast.SelectorExpr:
		c.advise(n, n.Sel, s)
		c.walk(n.X, s)
		return false
	case *ast.Ident:
		c.advise(n, n, s)
	}
	return true
}

// advise reports a name that a workflow must not use.
func (c *checker) advise(n ast.Node, id *ast.Ident, s scope) {
	if name, a, found := adviceFor(c.pass.TypesInfo.Uses[id]); found && !(s.sleep && a == clock) {
		c.report(n, "%s in a workflow %s; %s", name, a.wrong, a.instead)
	}
}

// literal checks a function literal that nobody is seen to call.
func (c *checker) literal(lit *ast.FuncLit, s scope) {
	switch branch := c.hasRun(lit); {
	case s.step != nil && !branch:
		c.walk(lit.Body, s)
	case s.step != nil:
	case branch:
		c.visit(lit, scope{root: s.root, own: lit})
	case c.callsRun(lit.Body):
		c.visit(lit, scope{root: s.root, own: s.own})
	}
}

// visit walks the body of a literal once.
func (c *checker) visit(lit *ast.FuncLit, s scope) {
	if !c.visited[lit] {
		c.visited[lit] = true
		c.walk(lit.Body, s)
	}
}

// call checks a call and its arguments.
func (c *checker) call(call *ast.CallExpr, s scope) {
	callee := typeutil.Callee(c.pass.TypesInfo, call)
	isRunCall := c.isRunCall(call)
	switch {
	case s.step != nil && isRunCall && !mayStep(callee):
		c.report(call, "a call of the run inside of a step returns ErrNested; make it before or after the step")
	case s.step != nil:
		c.writesByCall(call, callee, s)
	case isRunCall:
		c.outerRun(call, callee, s)
	}
	if s.step == nil {
		c.called(call, callee, s)
	}
	if lit, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok {
		c.walk(lit.Body, s)
	} else {
		c.walk(call.Fun, s)
	}
	s.sleep = s.sleep || isIn(callee, workflowPath) && (callee.Name() == "Sleep" || callee.Name() == "SleepUntil")
	step := stepArgument(callee)
	for i, arg := range call.Args {
		lit := c.literalOf(arg)
		_, written := ast.Unparen(arg).(*ast.FuncLit)
		switch {
		case lit != nil && i == step:
			c.walk(lit.Body, scope{root: s.root, own: s.own, step: lit, assigned: s.assigned})
		case lit != nil && s.step == nil && !c.hasRun(lit) && callsBack(callee):
			c.visit(lit, s)
		case written:
			c.literal(lit, s)
		case i == step && c.isFunction(arg): // such as rand.Int
		default:
			c.walk(arg, s)
		}
	}
}

// called checks what workflow code calls.
func (c *checker) called(call *ast.CallExpr, callee types.Object, s scope) {
	switch callee := callee.(type) {
	case *types.Var:
		if lit := c.closures[callee]; lit != nil && within(lit, s.root) {
			own := s.own
			if !within(lit, own) {
				own = s.root
			}
			c.visit(lit, scope{root: s.root, own: own})
		}
	case *types.Func:
		if isIn(callee, workflowPath) {
			return
		}
		if of := c.summaryOf(callee); of.Uses != "" && !(s.sleep && of.Wrong == clock.wrong) {
			c.report(call, "%s uses %s, which %s; %s", callee.Name(), of.Uses, of.Wrong, of.Instead)
		} else if decl := c.decls[callee.Origin()]; decl != nil && decl.Body != nil && takesRun(callee.Signature()) {
			c.root(decl, decl.Body)
		}
	}
	if id := calledName(call.Fun); id != nil && id.Name == "close" && callee == types.Universe.Lookup("close") {
		c.report(call, "a channel in a workflow keeps the run from being suspended; wait for a branch or a signal")
	}
}

// stepArgument returns which argument of a function of package workflow is the function of a step, or -1. That of
// Decide is like one: it runs once.
func stepArgument(callee types.Object) int {
	if !isIn(callee, workflowPath) {
		return -1
	}
	switch callee.Name() {
	case "Step", "StepTx", "Decide":
		return 2
	case "Undo":
		return 1
	}
	return -1
}

// callsBack reports whether a function calls its arguments before it returns: those of the standard library that take
// a comparison or a condition, and the key of Each.
func callsBack(callee types.Object) bool {
	for _, path := range []string{"slices", "sort", "maps", "strings", "bytes", workflowPath} {
		if isIn(callee, path) {
			return true
		}
	}
	return false
}

// literalOf returns the function literal that an expression is or names.
func (c *checker) literalOf(e ast.Expr) *ast.FuncLit {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return e
	case *ast.Ident:
		if v, ok := c.objectOf(e).(*types.Var); ok {
			return c.closures[v]
		}
	}
	return nil
}

// isFunction reports whether an expression names a declared function.
func (c *checker) isFunction(e ast.Expr) bool {
	id := calledName(e)
	if id == nil {
		return false
	}
	_, ok := c.objectOf(id).(*types.Func)
	return ok
}

// within reports whether a node stands inside of another.
func within(n, outer ast.Node) bool { return outer.Pos() <= n.Pos() && n.End() <= outer.End() }
