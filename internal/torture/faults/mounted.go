package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// FullMemory and FullDisk fill real file systems. Each process mounts its own file system,
// which disappears when the process ends.
var (
	FullMemory = mountedFamily("full-tmpfs", "tmpfs", 50, 3000)
	FullDisk   = mountedFamily("full-ext4", "ext4", 25, 1000)
)

// mountedFamily returns the family of a type of file system.
func mountedFamily(name, sort string, pr, nightly int) *harness.Family {
	return &harness.Family{
		Name:   name,
		Goals:  "R5",
		Method: "a real " + sort + " of a few MiB that another file fills except for a few bytes; like full, also when the queue is closed and opened then",
		Unit:   "full disks",
		PR:     pr, Nightly: nightly, Share: 5,
		Missing: func() string { return missingMount(sort) },
		Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
			image, err := makeImage(env.Dir, sort)
			return func(t *harness.Try) error { return mounted(t, sort, image) }, err
		},
	}
}

func mounted(t *harness.Try, sort, image string) error {
	left := filepath.Join(t.Dir, queueName)
	lines, stderr, err := runMounted(t.Ctx, t.Dir, sort, image, left, t.Rand.Uint64())
	if stderr != "" || err != nil {
		return fmt.Errorf("the process ended with %v and said: %s", err, stderr)
	}
	return judgeFull(t, left, lines)
}

// missingMount tries to mount a file system of a type, and returns what is missing.
func missingMount(sort string) string {
	dir, err := harness.MemoryFolder()
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	image, err := makeImage(dir, sort)
	if err != nil {
		return fmt.Sprintf("cannot make a %s here: %v", sort, err)
	}
	_, stderr, err := runMounted(context.Background(), dir, sort, image, "", 0)
	if err != nil {
		return fmt.Sprintf("cannot mount a %s here: %v: %s", sort, err, stderr)
	}
	return ""
}
