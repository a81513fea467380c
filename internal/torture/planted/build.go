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

// modulePath is that of the module in which faults are planted.
const modulePath = "github.com/gopawl/pawl"

// moduleFolder is where the source of the module lies, of which the current folder is a
// part.
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

// missing says what this machine lacks for the hunts of all faults.
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

// build makes the program with all faults in a folder, and returns its path.
func build(ctx context.Context, folder string, faults []Fault) (program string, err error) {
	module, err := moduleFolder(ctx)
	if err != nil {
		return "", err
	}
	overlay, err := lay(module, folder, faults)
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
