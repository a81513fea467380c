package analyzer

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// dropped reports a statement that is a call of the run whose error nobody reads.
func (c *checker) dropped(e ast.Expr) {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && c.isRunCall(call) && c.errorResult(call) >= 0 {
		c.report(call, "the error of this call is dropped, so the function goes on when its run does not; return the error")
	}
}

// ignored reports an assignment of the error of a call of the run to the blank identifier.
func (c *checker) ignored(n *ast.AssignStmt) {
	for i, right := range n.Rhs {
		call, ok := ast.Unparen(right).(*ast.CallExpr)
		if !ok || !c.isRunCall(call) {
			continue
		}
		at := c.errorResult(call)
		if at < 0 {
			continue
		}
		if len(n.Rhs) > 1 {
			at = i
		}
		if id, ok := n.Lhs[at].(*ast.Ident); ok && id.Name == "_" {
			c.dropped(call)
		}
	}
}

// errorResult returns which result of a call is its error, or -1.
func (c *checker) errorResult(call *ast.CallExpr) int {
	t := c.pass.TypesInfo.TypeOf(call)
	at := 0
	if results, ok := t.(*types.Tuple); ok {
		if at = results.Len() - 1; at < 0 {
			return -1
		}
		t = results.At(at).Type()
	}
	if t == nil || !types.Identical(t, types.Universe.Lookup("error").Type()) {
		return -1
	}
	return at
}

// outerRun reports a call of a branch by the Run of the function that began it.
func (c *checker) outerRun(call *ast.CallExpr, callee types.Object, s scope) {
	const instead = "so it is refused, or is made in another order; take the Run that the branch's function gets"
	if v, ok := callee.(*types.Var); ok {
		if lit := c.closures[v]; lit != nil && !within(lit, s.own) && within(lit, s.root) && !c.hasRun(lit) {
			c.report(call, "%s makes its calls by the Run of another function, %s", v.Name(), instead)
		}
	}
	takers := call.Args
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		takers = append([]ast.Expr{selector.X}, takers...)
	}
	for _, e := range takers {
		id, ok := ast.Unparen(e).(*ast.Ident)
		if !ok {
			continue
		}
		v, ok := c.objectOf(id).(*types.Var)
		if ok && isRun(v.Type()) && (v.Pos() < s.own.Pos() || s.own.End() <= v.Pos()) {
			c.report(call, "the call is made by the Run of another function, %s", instead)
		}
	}
}

// rangeOver checks a range over a map or a channel. The order of a map is another one each time, which matters if
// the body makes calls, or collects what nobody sorts.
func (c *checker) rangeOver(n *ast.RangeStmt, s scope) {
	if s.step != nil {
		return
	}
	if _, ok := c.pass.TypesInfo.TypeOf(n.X).Underlying().(*types.Chan); ok {
		c.report(n, "a range over a channel keeps the run from being suspended; wait for branches or signals")
		return
	}
	if !c.isUnordered(n.X) {
		return
	}
	if c.callsRun(n.Body) {
		c.report(n, "the calls in this range come in the order of a map, which is another one when the run continues; range over sorted keys")
		return
	}
	ast.Inspect(n.Body, func(inner ast.Node) bool {
		switch inner := inner.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			for i, right := range inner.Rhs {
				if c.isAppend(right) {
					c.unsorted(inner.Lhs[i], n, s)
				}
			}
		}
		return true
	})
}

// collected reports a slice that slices.Collect makes of what a map yields.
func (c *checker) collected(n *ast.AssignStmt, s scope) {
	for i, right := range n.Rhs {
		call, ok := ast.Unparen(right).(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !c.isUnordered(call.Args[0]) {
			continue
		}
		if callee := typeutil.Callee(c.pass.TypesInfo, call); isIn(callee, "slices") && callee.Name() == "Collect" {
			c.unsorted(n.Lhs[i], call, s)
		}
	}
}

// unsorted reports a slice that gets the order of a map at a node, unless it is sorted behind it.
func (c *checker) unsorted(to ast.Expr, at ast.Node, s scope) {
	id, ok := ast.Unparen(to).(*ast.Ident)
	if !ok || id.Name == "_" {
		return
	}
	v := c.objectOf(id)
	if at.Pos() <= v.Pos() && v.Pos() < at.End() {
		return // it holds what one round collects
	}
	sorted := false
	ast.Inspect(s.root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Pos() < at.End() {
			return !sorted
		}
		callee := typeutil.Callee(c.pass.TypesInfo, call)
		if isIn(callee, "sort") || isIn(callee, "slices") && strings.HasPrefix(callee.Name(), "Sort") {
			ast.Inspect(call, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				sorted = sorted || ok && c.objectOf(id) == v
				return !sorted
			})
		}
		return !sorted
	})
	if !sorted {
		c.report(at, "%s gets the order of a map, which is another one when the run continues; sort it", id.Name)
	}
}

// isUnordered reports whether an expression is a map, or a sequence that maps.Keys or the like makes of one.
func (c *checker) isUnordered(e ast.Expr) bool {
	if _, ok := c.pass.TypesInfo.TypeOf(e).Underlying().(*types.Map); ok {
		return true
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	callee := typeutil.Callee(c.pass.TypesInfo, call)
	return isIn(callee, "maps") && (callee.Name() == "Keys" || callee.Name() == "Values" || callee.Name() == "All")
}

func (c *checker) isAppend(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && typeutil.Callee(c.pass.TypesInfo, call) == types.Universe.Lookup("append")
}
