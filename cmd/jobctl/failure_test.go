package main

import (
	"context"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// Rule: each error that matters to a script or a user has its exit code and its remedy.
func TestWhatErrorsMean(t *testing.T) {
	a := &app{flags: shared{db: "x"}}
	for _, c := range []struct {
		err  error
		code int
		next string
	}{
		{bolt.ErrLocked, exitLocked, "stop the app"},
		{admin.ErrUnreachable, exitLocked, "Check that the app is running"},
		{context.DeadlineExceeded, exitLocked, "--timeout waits longer"},
		{admin.ErrNotLive, exitLocked, "Start the app"},
		{admin.ErrDenied, exitError, "JOBCTL_TOKEN"},
		{bolt.ErrNotQueue, exitError, "Check --db"},
		{fs.ErrNotExist, exitError, "Check --db"},
		{fs.ErrPermission, exitError, "as the app's user"},
		{bolt.ErrInsecure, exitError, "--insecure"},
		{pawl.ErrNewerFormat, exitFormat, "release that wrote the file"},
		{bolt.ErrOlderFormat, exitFormat, "release that wrote the file"},
		{pawl.ErrUnknownOutcome, exitError, "look before you run"},
		{pawl.ErrPoisoned, exitError, "Check the disk"},
		{bolt.ErrDisk, exitError, "Free space on that disk"},
		{pawl.ErrNotFound, exitNoMatch, "job list"},
		{pawl.ErrConflict, exitConflict, "job show"},
		{pawl.ErrCorrupt, exitDamaged, "db salvage"},
		{context.Canceled, exitInterrupted, ""},
	} {
		f := a.failure(fmt.Errorf("look: %w", c.err))
		require.Equal(t, c.code, f.code, c.err)
		require.Contains(t, f.next, c.next, c.err)
	}
}
