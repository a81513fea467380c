package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func init() { harness.Role("faults-mounted", mountedRole) }

// makeImage makes the image of a disk, for file systems that have one.
func makeImage(dir, sort string) (string, error) {
	if sort == "tmpfs" {
		return "", nil
	}
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return "", err
	}
	const size = 8 << 20
	if err := os.Truncate(image, size); err != nil {
		return "", err
	}
	text, err := system("mkfs."+sort, "-q", "-F", image).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(text))
	}
	return image, nil
}

// system is a command of those that only root has in its path.
func system(name string, args ...string) *exec.Cmd {
	path, err := exec.LookPath(name)
	for _, folder := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(folder, name))
		}
	}
	if err != nil {
		path = name
	}
	return exec.Command(path, args...)
}

// runMounted runs a child that sees its own mounts, as its own root if it is nobody's.
func runMounted(ctx context.Context, dir, sort, image, left, seed string) (lines []string, stderr string, err error) {
	at := filepath.Join(dir, "mounted")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, "", err
	}
	if image != "" { // each try has its own
		b, err := os.ReadFile(image)
		if image = filepath.Join(dir, "disk"); err == nil {
			err = os.WriteFile(image, b, 0o600)
		}
		if err != nil {
			return nil, "", err
		}
		defer os.Remove(image)
	}
	cmd, err := harness.Command(ctx, nil, "faults-mounted", sort, at, image, left, seed)
	if err != nil {
		return nil, "", err
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	err = cmd.Run()
	if text := strings.TrimSuffix(out.String(), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	return lines, strings.TrimSpace(errs.String()), err
}

// mountedRole mounts a file system, uses a queue in it, and leaves a copy of its file outside.
func mountedRole(args []string) error {
	sort, at, image, left := args[0], args[1], args[2], args[3]
	seed, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("have mounts of its own: %w", err)
	}
	if sort == "tmpfs" {
		err = syscall.Mount("tmpfs", at, "tmpfs", 0, "size=4m")
	} else if text, e := system("mount", "-t", sort, "-o", "loop", image, at).CombinedOutput(); e != nil {
		err = fmt.Errorf("%w: %s", e, bytes.TrimSpace(text))
	}
	if err != nil || left == "" {
		return err
	}
	f := &filler{user: user{rand: rand.New(rand.NewPCG(seed, 0))}, path: filepath.Join(at, queueName), takesSpace: fillDisk}
	if err := f.run(); err != nil {
		return err
	}
	b, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	return os.WriteFile(left, b, 0o600)
}

// fillDisk fills the disk beside the queue's file, but for some bytes.
func fillDisk(f *filler) (giveBack func() error, sure bool, err error) {
	path := filepath.Join(filepath.Dir(f.path), "ballast")
	giveBack = func() error { return os.Remove(path) }
	ballast, err := os.Create(path)
	if err != nil {
		return nil, false, err
	}
	size := int64(0)
	for part := make([]byte, 64<<10); len(part) > 0; {
		n, err := ballast.Write(part)
		if size += int64(n); errors.Is(err, syscall.ENOSPC) {
			part = part[:len(part)/2]
		} else if err != nil {
			return nil, false, errors.Join(err, ballast.Close(), giveBack())
		}
	}
	err = errors.Join(ballast.Truncate(max(0, size-f.rand.Int64N(256<<10))), ballast.Sync(), ballast.Close())
	return giveBack, true, err
}
