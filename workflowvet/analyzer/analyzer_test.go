package analyzer_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/gopawl/pawl/workflowvet/analyzer"
)

// Rule: each rule reports what it is for, with a message that says what to write instead, and nothing else. The
// packages in testdata have both.
func TestRules(t *testing.T) {
	for _, name := range []string{"clock", "random", "order", "beside", "runs", "writes", "dropped", "world", "silence"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), analyzer.Analyzer, "./"+name)
		})
	}
}

// Rule: a function of another package of the app is known by what it uses, and by whether it makes calls.
func TestOtherPackages(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analyzer.Analyzer, "./helpers/...")
}
