package analyzer

import (
	"go/ast"
	"strings"
)

const silence = "//workflowvet:ok"

// readComments notes the lines that comments silence, and reports comments without a reason.
func (c *checker) readComments(file *ast.File) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			reason, found := strings.CutPrefix(comment.Text, silence)
			if !found || reason != "" && reason[0] != ' ' && reason[0] != '\t' {
				continue
			}
			if strings.TrimSpace(reason) == "" {
				c.report(comment, "workflowvet:ok without a reason silences nothing; write behind it why the line is right")
				continue
			}
			at := c.pass.Fset.Position(comment.Pos())
			c.silenced[place{at.Filename, at.Line}] = true
		}
	}
}
