package analyzer

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// assignment checks an assignment, and its sides in turn.
func (c *checker) assignment(n *ast.AssignStmt, s scope) bool {
	if s.step == nil {
		c.ignored(n)
		c.collected(n, s)
		s.assigned = make(map[types.Object]bool)
	}
	for _, left := range n.Lhs {
		id, _ := ast.Unparen(left).(*ast.Ident)
		if id != nil && s.step == nil {
			s.assigned[c.objectOf(id)] = true
		}
		if id == nil || c.pass.TypesInfo.Defs[id] == nil {
			c.write(n, left, s)
		}
	}
	for _, side := range [][]ast.Expr{n.Lhs, n.Rhs} {
		for _, e := range side {
			c.walk(e, s)
		}
	}
	return false
}

// write checks what a statement writes. A write by a step is lost when the run continues, as the step does not run
// again. Branches write at the same time. And variables of the program are written by other runs too.
func (c *checker) write(at ast.Node, to ast.Expr, s scope) {
	id, indirect, slice := c.written(to)
	if id == nil {
		return
	}
	v, ok := c.objectOf(id).(*types.Var)
	if !ok {
		return
	}
	inRoot := s.root.Pos() <= v.Pos() && v.Pos() < s.root.End()
	inOwn := s.own.Pos() <= v.Pos() && v.Pos() < s.own.End()
	switch {
	case s.step != nil:
		inStep := s.step.Pos() <= v.Pos() && v.Pos() < s.step.End()
		// What a parameter points to may be the world, which steps are for.
		if inRoot && !inStep && !s.assigned[v] && (!indirect || !c.params[v]) {
			c.report(at, "the step writes %s, which is lost when the run continues, as the step does not run again; return the value from the step", id.Name)
		}
	case !inRoot:
		c.report(at, "the workflow writes %s, which other runs and executions write too; keep the state in the function, or write it in a step", id.Name)
	case !inOwn && !slice:
		c.report(at, "the branch writes %s, which the function and other branches use at the same time; return the value from the branch, or share it by workflow.Share", id.Name)
	}
}

// written returns the variable that an expression names or leads to, whether by a pointer, a map, or a slice, and
// whether it is an element of a slice.
func (c *checker) written(e ast.Expr) (id *ast.Ident, indirect, slice bool) {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x, indirect, slice
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e, indirect = x.X, true
		case *ast.IndexExpr:
			switch c.pass.TypesInfo.TypeOf(x.X).Underlying().(type) {
			case *types.Array:
				slice = true
			case *types.Map:
				indirect = true
			default:
				indirect, slice = true, true
			}
			e = x.X
		case *ast.SelectorExpr:
			if base, ok := x.X.(*ast.Ident); ok {
				if _, ok := c.objectOf(base).(*types.PkgName); ok {
					return x.Sel, indirect, slice
				}
			}
			if _, ok := c.pass.TypesInfo.TypeOf(x.X).Underlying().(*types.Pointer); ok {
				indirect = true
			}
			e = x.X
		default:
			return nil, false, false
		}
	}
}

// writesByCall checks a call of a step that writes its arguments: delete, clear, and functions that decode.
func (c *checker) writesByCall(call *ast.CallExpr, callee types.Object, s scope) {
	switch callee := callee.(type) {
	case *types.Builtin:
		if name := callee.Name(); (name == "delete" || name == "clear" || name == "copy") && len(call.Args) > 0 {
			c.write(call, &ast.IndexExpr{X: call.Args[0]}, s)
		}
	case *types.Func:
		name := callee.Name()
		if !strings.HasPrefix(name, "Unmarshal") && !strings.HasPrefix(name, "Decode") && !strings.HasPrefix(name, "Scan") {
			return
		}
		for _, arg := range call.Args {
			if address, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && address.Op == token.AND {
				c.write(call, address.X, s)
			}
		}
	}
}
