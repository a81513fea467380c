package planted

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// variable names the fault that a process has.
const variable = "PAWL_TORTURE_FAULT"

// condition is what stands in an edit for whether a process has its fault.
const condition = "PLANTED"

// switchName is the file that tells a package which fault its process has. It is added to
// every package that has an edit.
const switchName = "planted_fault.go"

const switchText = `package %s

import "os"

var plantedFault = os.Getenv(%q)

func planted(name string) bool { return name == plantedFault }
`

// lay writes the changed files of a module, and a description of where they belong for
// go build -overlay, into a folder. It returns the path of that description.
func lay(module, folder string, faults []Fault) (path string, err error) {
	edits := make(map[string][]edit)
	for _, f := range faults {
		for _, e := range f.Edits {
			edits[e.File] = append(edits[e.File], edit{e, f.Name})
		}
	}
	l := layer{module: module, folder: folder, replace: make(map[string]string)}
	for file, some := range edits {
		if err := l.change(file, some); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": l.replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// layer is a lay at work.
type layer struct {
	module, folder string
	replace        map[string]string // by the path in the module, what lies over it
}

// change lays a file with its edits over the one of the module, and the switch beside it.
func (l *layer) change(file string, edits []edit) error {
	original := filepath.Join(l.module, filepath.FromSlash(file))
	source, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	text, err := rewritten(string(source), edits)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), original, source, parser.PackageClauseOnly)
	if err != nil {
		return err
	}
	beside := filepath.Join(filepath.Dir(original), switchName)
	return firstError(
		l.over(original, text),
		l.over(beside, fmt.Sprintf(switchText, parsed.Name.Name, variable)),
	)
}

// over lays a text over a file.
func (l *layer) over(file, text string) error {
	path, ok := l.replace[file]
	if !ok {
		path = filepath.Join(l.folder, strconv.Itoa(len(l.replace))+".go")
		l.replace[file] = path
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// edit is one of a fault of that name.
type edit struct {
	Edit
	fault string
}

// rewritten makes all edits of a text. Each must find its place exactly once in the text as
// it was, and no two may overlap: then their order does not matter.
func rewritten(text string, edits []edit) (string, error) {
	at := make(map[int]edit)
	var starts []int
	for _, e := range edits {
		switch n := strings.Count(text, e.Old); {
		case n != 1:
			return "", fmt.Errorf("the place of fault %q was found %d times; adapt the fault to the source: %q", e.fault, n, e.Old)
		case !strings.Contains(e.New, condition):
			return "", fmt.Errorf("fault %q would be in every process: no %s in %q", e.fault, condition, e.New)
		}
		start := strings.Index(text, e.Old)
		if other, ok := at[start]; ok {
			return "", fmt.Errorf("faults %q and %q are in the same place", e.fault, other.fault)
		}
		at[start], starts = e, append(starts, start)
	}
	slices.Sort(starts)
	var out strings.Builder
	done := 0
	for _, start := range starts {
		e := at[start]
		if start < done {
			return "", fmt.Errorf("fault %q overlaps another one", e.fault)
		}
		out.WriteString(text[done:start])
		out.WriteString(strings.ReplaceAll(e.New, condition, fmt.Sprintf("planted(%q)", e.fault)))
		done = start + len(e.Old)
	}
	return out.String() + text[done:], nil
}
