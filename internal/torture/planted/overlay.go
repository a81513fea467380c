package planted

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// variable is the environment variable that names the fault of a process.
const variable = "PAWL_TORTURE_FAULT"

// switchName is the file that tells a package which fault its process has. Every package
// that has an edit gets it.
const switchName = "planted_fault.go"

const switchText = `package %s

import "os"

var plantedFault = os.Getenv(%q)

func planted(name string) bool { return name == plantedFault }
`

// writeOverlay writes the edited files of a module into a folder, and the description that
// go build -overlay reads. It returns the path of that description.
func writeOverlay(module, folder string, faults []Fault) (string, error) {
	edits := make(map[string][]edit) // by package
	for _, f := range faults {
		for _, e := range f.Edits {
			pkg, _ := path.Split(e.In)
			edits[pkg] = append(edits[pkg], edit{e, f.Name})
		}
	}
	replace := make(map[string]string)
	add := func(file, text string) error {
		changed := filepath.Join(folder, strconv.Itoa(len(replace))+".go")
		replace[file] = changed
		return os.WriteFile(changed, []byte(text), 0o600)
	}
	for pkg, some := range edits {
		dir := filepath.Join(module, filepath.FromSlash(pkg))
		parsed, err := parsePackage(dir)
		if err != nil {
			return "", err
		}
		changed, err := parsed.apply(some)
		if err != nil {
			return "", err
		}
		for file, text := range changed {
			if err := add(file, text); err != nil {
				return "", err
			}
		}
		if err := add(filepath.Join(dir, switchName), fmt.Sprintf(switchText, parsed.name, variable)); err != nil {
			return "", err
		}
	}
	return harness.Overlay(folder, replace)
}

// edit is an Edit of the fault of that name.
type edit struct {
	Edit
	fault string
}

// change is an edit whose place is known.
type change struct {
	edit
	start, end int
}

// apply makes all edits of a package and returns the text of each changed file.
func (p *parsedPackage) apply(edits []edit) (map[string]string, error) {
	changes := make(map[string][]change)
	var errs []error
	for _, e := range edits {
		if !strings.Contains(e.New, condition) {
			errs = append(errs, fmt.Errorf("fault %q would be in every process: no %s in %q", e.fault, condition, e.New))
			continue
		}
		file, c, err := p.locate(e)
		errs = append(errs, err)
		changes[file] = append(changes[file], c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for file, some := range changes {
		text, err := rewrite(string(p.sources[file]), some)
		if err != nil {
			return nil, err
		}
		texts[file] = text
	}
	return texts, nil
}

// rewrite makes the changes of one file. No two may overlap, so their order does not matter.
func rewrite(text string, changes []change) (string, error) {
	slices.SortFunc(changes, func(a, b change) int { return a.start - b.start })
	var out strings.Builder
	done := 0
	for i, c := range changes {
		if c.start < done {
			return "", fmt.Errorf("faults %q and %q change the same place", changes[i-1].fault, c.fault)
		}
		out.WriteString(text[done:c.start])
		out.WriteString(grouped(strings.NewReplacer(
			condition, fmt.Sprintf("planted(%q)", c.fault),
			matched, text[c.start:c.end],
		).Replace(c.New)))
		done = c.end
	}
	return out.String() + text[done:], nil
}

// grouped puts an expression with an operator into parentheses: in its place, another operator may bind closer.
func grouped(text string) string {
	if e, err := parser.ParseExpr(text); err == nil {
		if _, is := e.(*ast.BinaryExpr); is {
			return "(" + text + ")"
		}
	}
	return text
}
