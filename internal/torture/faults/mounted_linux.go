package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func init() { harness.Role("faults-mounted", mountedRole) }

// makeImage makes the image of a disk, if the file system has one.
func makeImage(dir, sort string) (string, error) {
	if sort == "tmpfs" {
		return "", nil
	}
	image := filepath.Join(dir, "image")
	return image, harness.MakeFileSystem(image, 8<<20, "mkfs."+sort, "-q", "-F")
}

// runMounted runs a child with mounts of its own. It is root in a user namespace if this
// process is not root.
func runMounted(ctx context.Context, dir, sort, image, left string, seed uint64) (lines []string, stderr string, err error) {
	at := filepath.Join(dir, "mounted")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, "", err
	}
	if image != "" { // each try has its own
		own := filepath.Join(dir, "disk")
		if err := harness.CopyFile(image, own); err != nil {
			return nil, "", err
		}
		image = own
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
	return harness.Lines(out.String()), strings.TrimSpace(errs.String()), err
}

// mountedRole mounts a file system, uses a queue in it, and copies its file outside.
func mountedRole(args harness.Args) (err error) {
	sort, at, image, left := args[0], args[1], args[2], args[3]
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("have mounts of its own: %w", err)
	}
	if sort == "tmpfs" {
		err = syscall.Mount("tmpfs", at, "tmpfs", 0, "size=4m")
	} else {
		err = harness.System("mount", "-t", sort, "-o", "loop", image, at)
	}
	if err != nil || left == "" {
		return err
	}
	f := &filler{user: newUser(args.Uint(4)), path: filepath.Join(at, queueName), takesSpace: fillDisk}
	if err := f.run(); err != nil {
		return err
	}
	return harness.CopyFile(f.path, left)
}

// fillDisk fills the rest of the queue's disk, except for some bytes.
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
