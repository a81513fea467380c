package planted

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// modulePath is the path of the module that gets the faults.
const modulePath = "github.com/gopawl/pawl"

// moduleFolder returns the root of the module that contains the current folder.
func moduleFolder(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	list.Env = append(os.Environ(), "GOWORK=off") // or it lists every module of the workspace
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("needs the go tool, and the source around the current folder: %w", err)
	}
	path, folder, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if path != modulePath {
		return "", fmt.Errorf("needs to be run in the source of %s, not of %s", modulePath, path)
	}
	return folder, nil
}

// missing reports what this machine lacks for the hunts of all faults.
func missing(families map[string]*harness.Family) string {
	if _, err := moduleFolder(context.Background()); err != nil {
		return err.Error()
	}
	for _, h := range hunts(faults()) {
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
	module, err := moduleFolder(ctx)
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(module, folder, faults)
	if err != nil {
		return "", err
	}
	program = filepath.Join(folder, "torture.exe")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./internal/torture")
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the program with faults does not build: %w\n%s", err, out)
	}
	return program, nil
}
