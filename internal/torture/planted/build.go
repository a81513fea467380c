package planted

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// missing reports what this machine lacks for the hunts of all faults.
func missing(families map[string]*harness.Family) string {
	if lack := harness.MissingSource(); lack != "" {
		return lack
	}
	for _, h := range hunts(faults) {
		f := families[h.Family]
		if f == nil || f.Missing == nil {
			continue
		}
		if lack := f.Missing(); lack != "" {
			return fmt.Sprintf("family %s, which must find some: %s", f.Name, lack)
		}
	}
	return ""
}

// buildProgram builds the program with all faults into a folder and returns its path.
func buildProgram(ctx context.Context, folder string, faults []Fault) (program string, err error) {
	module, err := harness.Source(ctx)
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(module, folder, faults)
	if err != nil {
		return "", err
	}
	program = filepath.Join(folder, "torture.exe")
	return program, harness.Build(ctx, module, "build", harness.Lean, "-overlay", overlay, "-o", program, "./internal/torture")
}
