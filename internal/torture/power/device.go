package power

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// Device simulates power cuts of a real file system. It stops the process at work, copies the
// device, and mounts the copy, which replays the journal.
var Device = &harness.Family{
	Name:  "device",
	Goals: "R6",
	Method: "a file system on a loop device is copied while the working process is stopped; the copy is mounted " +
		"and its journal replayed; then every invariant and the state of every job",
	Unit: "copies",
	PR:   50, Nightly: 2_000, Share: 6,
	Missing: deviceMissing,
	Prepare: prepareDevice,
}

func init() { harness.Role("device-work", deviceWork) }

// deviceWork uses a queue in a folder until a kill.
func deviceWork(args harness.Args) error {
	go endWithInput()
	q, err := bolt.Open(filepath.Join(args[0], queueFile), oracle.Options())
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	err = oracle.AnyWorkload(args.Uint(1)).Run(context.Background(), q, harness.Emit)
	return errors.Join(err, q.Close())
}
