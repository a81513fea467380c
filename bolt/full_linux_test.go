package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/withid"
)

func init() {
	roles["forbidden"] = forbiddenRole
	roles["limited"] = limitedRole
	roles["chroot"] = chrootRole
}

// mountMemory mounts a file system of the given size until the test ends.
func mountMemory(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	mountOver(t, folder, size)
	return folder
}

// The list of locks identifies a file by its disk and its number, and other disks have files
// with the same number.
func TestHolderIsFoundOnItsDisk(t *testing.T) {
	numbers := make(map[uint64]bool)
	for range 3 {
		path := filepath.Join(mountMemory(t, "1m"), "jobs.db")
		holder := kills.Start(t, "hold", path)
		require.Equal(t, "open", holder.Line(t))
		t.Cleanup(func() { _ = holder.Stdin.Close(); holder.Rest() }) // before the file system is unmounted
		_, err := Open(path, &Options{LockTimeout: 1})
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, fmt.Sprintf("(pid %d, ", holder.Cmd.Process.Pid))
		var stat syscall.Stat_t
		require.NoError(t, syscall.Stat(path, &stat))
		numbers[stat.Ino] = true
	}
	require.Len(t, numbers, 1, "the test needs files of one number")
}

func TestReadOnlyDisk(t *testing.T) {
	folder := mountMemory(t, "4m")
	path := filepath.Join(folder, "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
	remount := func(flags uintptr) {
		require.NoError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|flags, "size=4m"))
	}
	remount(syscall.MS_RDONLY)
	before := snapshot(t, folder)
	for _, path := range []string{path, filepath.Join(folder, "new.db")} {
		_, err := Open(path, quiet())
		require.ErrorIs(t, err, syscall.EROFS)
		require.ErrorContains(t, err, "choose another place, or only read it with OpenReader")
	}
	r, err := OpenReader(path)
	require.NoError(t, err, "a reader needs no more")
	stats, err := r.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Queues[0].Leased)
	require.NoError(t, r.Close())
	require.Equal(t, before, snapshot(t, folder))

	remount(0)
	openAt(t, path, nil)
}

// An ordinary user and a folder or file of another user. The superuser may do everything, so a
// child without its rights acts as the user.
func TestForbiddenPlaces(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
	require.NoError(t, os.Chmod(folder, 0o755))
	locked := filepath.Join(folder, "locked")
	require.NoError(t, os.Mkdir(locked, 0o555))
	sound := soundFile(t)
	readable, secret, inside := filepath.Join(folder, "readable.db"), filepath.Join(folder, "secret.db"), filepath.Join(locked, "jobs.db")
	require.NoError(t, os.WriteFile(readable, sound, 0o600))
	require.NoError(t, os.WriteFile(secret, sound, 0o600))
	before := snapshot(t, folder)
	require.NoError(t, os.Chmod(readable, 0o444))
	require.NoError(t, os.Chmod(secret, 0))

	c := kills.Start(t, "forbidden", "Open", readable, "Open", secret, "Open", inside, "OpenReader", secret, "OpenReader", readable)
	for _, what := range []string{"Open readable", "Open secret", "Open in a folder", "OpenReader secret"} {
		err := c.Line(t)
		require.Contains(t, err, "true ", what)
		require.Contains(t, err, "check the owner and the mode of the file and of its folder", what)
	}
	require.Contains(t, c.Line(t), "<nil>", "who may read the file may open it to read")
	require.Empty(t, c.Rest())
	require.NoError(t, os.Chmod(secret, 0o600))
	require.Equal(t, before, snapshot(t, folder))
	require.Empty(t, snapshot(t, locked))
}

// forbiddenRole opens files as user nobody.
func forbiddenRole(args []string) error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	for len(args) > 0 {
		for _, o := range openers {
			if o.name == args[0] {
				err := o.open(args[1])
				kills.Say(errors.Is(err, fs.ErrPermission), err)
			}
		}
		args = args[2:]
	}
	return nil
}

// fillDisk enqueues jobs of decreasing size until the disk is full.
func fillDisk(ctx context.Context, q *Queue, smallest int) (ids []pawl.ID, err error) {
	for size := 60_000; size >= smallest; size /= 2 {
		for {
			e := &pawl.Envelope{Kind: "filler", Queue: "fillers", Payload: make([]byte, size)}
			if err = withid.Enqueue(ctx, q, e); err != nil {
				if !errors.Is(err, ErrDisk) || errors.Is(err, pawl.ErrUnknownOutcome) {
					return nil, err
				}
				break
			}
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// On a full disk enqueues fail and acks work, as long as the file has the few free pages that
// an ack needs.
func TestFullDisk(t *testing.T) {
	folder := mountMemory(t, "4m")
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	path := filepath.Join(folder, "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	ctx := t.Context()
	for range 300 {
		add(t, q, nil)
	}
	leases := fetch(t, q, 300)
	require.Len(t, leases, 300)

	stored, err := fillDisk(ctx, q, 4000)
	require.NoError(t, err)
	for _, l := range leases[:100] {
		require.NoError(t, q.Settle(ctx, l.Ack()), "an ack makes room")
	}
	_, err = q.Extend(ctx, leases[100:]...)
	require.NoError(t, err)
	require.Equal(t, 200, countsOf(t, q, pawl.DefaultQueue).Leased)

	require.NoError(t, os.Remove(ballast))
	large := add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, 60_000) })
	atOnce(t, leases[100:200], func(l *pawl.Lease) error { return q.Settle(ctx, l.Nack(0, errors.New("boom"))) })
	require.NoError(t, q.Close())

	q = openAt(t, path, nil)
	require.Equal(t, pawl.Counts{Ready: 201}, countsOf(t, q, pawl.DefaultQueue))
	require.Equal(t, len(stored), countsOf(t, q, "fillers").Ready)
	for _, id := range append(stored, large.ID) {
		require.NotNil(t, find(t, q, id), "an acknowledged job is gone")
	}
}

// A queue that does not fit on the disk is not created partially.
func TestCreateOnAFullDisk(t *testing.T) {
	for kilobytes := 4; kilobytes <= 64; kilobytes *= 2 {
		folder := mountMemory(t, fmt.Sprintf("%dk", kilobytes))
		path := filepath.Join(folder, "jobs.db")
		q, err := Open(path, quiet())
		if err != nil {
			require.ErrorIs(t, err, ErrDisk)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.Empty(t, snapshot(t, folder), "something is left of it")
			continue
		}
		require.Greater(t, kilobytes, 16, "less than four pages are no queue")
		require.NoError(t, q.Close())
		checkFile(t, path)
	}
}

// After a process died on a full disk, Open takes its leases back on the full disk, as long as
// the file has a few free pages. Otherwise Open reports what is wrong.
func TestOpenOnAFullDisk(t *testing.T) {
	for _, test := range []struct {
		rule     string
		smallest int
		want     error
	}{
		{"with a few free pages", 4000, nil},
		{"with next to none", 400, ErrDisk},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := mountMemory(t, "4m")
			path := filepath.Join(folder, "jobs.db")
			leaveLeases(t, path, 1000)
			q, err := Open(path, quiet())
			require.NoError(t, err)
			require.Len(t, fetch(t, q, 1000), 1000)
			_, err = fillDisk(t.Context(), q, test.smallest)
			require.NoError(t, err)
			require.NoError(t, q.Close())

			q, err = Open(path, quiet())
			require.ErrorIs(t, err, test.want)
			if err != nil {
				require.ErrorContains(t, err, "take back the leases")
				lockFree(t, path)
				require.NoError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=5m"))
				q, err = Open(path, quiet())
				require.NoError(t, err)
			}
			require.Equal(t, 1000, countsOf(t, q, pawl.DefaultQueue).Ready)
			for e, err := range q.Jobs(t.Context(), pawl.Filter{Queue: pawl.DefaultQueue}) {
				require.NoError(t, err)
				require.Equal(t, 2, e.Crashes)
			}
			require.NoError(t, q.Close())
			checkFile(t, path)
		})
	}
}

// The system may also refuse to let the file grow.
func TestFileSizeLimit(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	c := kills.Start(t, "limited", path)
	require.Equal(t, []string{"full", "acked", "again"}, c.Rest(), c.Stderr.String())
	require.True(t, c.Cmd.ProcessState.Success(), c.Stderr.String())
	q := openAt(t, path, nil)
	require.Equal(t, 1, countsOf(t, q, "again").Ready)
	require.Zero(t, countsOf(t, q, pawl.DefaultQueue).Ready)
}

// limitedRole fills its file up to a limit, and continues without the limit.
func limitedRole(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	q, err := Open(args[0], quiet())
	if err != nil {
		return err
	}
	for range 100 {
		if err := withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k"}); err != nil {
			return err
		}
	}
	leases, err := q.Fetch(ctx, pawl.Request{Max: 100})
	if err != nil {
		return err
	}
	small := limit
	small.Cur = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	if _, err := fillDisk(ctx, q, 4000); err != nil {
		return err
	}
	kills.Say("full")
	for _, l := range leases {
		if err := q.Settle(ctx, l.Ack()); err != nil {
			return err
		}
	}
	kills.Say("acked")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "k", Queue: "again", Payload: make([]byte, 600_000)}); err != nil {
		return err
	}
	kills.Say("again")
	return q.Close()
}
