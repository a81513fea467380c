// Shoot makes the pictures of jobctl in docs: it runs the command and an app in a hidden
// terminal, and draws the screen as SVG. The pictures show real output.
//
//	go run ./internal/shoot -out ../../docs/pictures
//
// Run it in the folder of jobctl. It needs tmux, and takes about half a minute. The app is
// examples/steer; it creates the large file of the progress bar in a temporary folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	out := flag.String("out", "", "`folder` for the pictures")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := shoot(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func shoot(ctx context.Context, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "shoot")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for name, build := range map[string][]string{
		"jobctl": {"build", "-o", filepath.Join(folder, "jobctl"), "."},
		"steer":  {"build", "-C", "../..", "-o", filepath.Join(folder, "steer"), "./examples/steer"},
	} {
		cmd := exec.CommandContext(ctx, "go", build...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	s := &studio{ctx: ctx, folder: folder, out: out}
	if err := s.live(); err != nil {
		return err
	}
	return s.progress()
}
