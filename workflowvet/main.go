// Command workflowvet finds code in workflows that may behave differently when a run continues: clocks, random numbers,
// the order of maps, goroutines, lost writes, and dropped errors. It runs as a vet tool, or alone:
//
//	go vet -vettool=$(which workflowvet) ./...
//	workflowvet ./...
//
// Package [github.com/gopawl/pawl/workflowvet/analyzer] has the rules.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/gopawl/pawl/workflowvet/analyzer"
)

// Main of a singlechecker also serves go vet.
func main() { singlechecker.Main(analyzer.Analyzer) }
