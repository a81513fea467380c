package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// On a full disk, the error of an enqueue says so, and nothing is stored. Leased jobs can
// be settled, and all calls succeed again when there is room.
func TestFull(t *testing.T) {
	tryFamily(t, Full, max(8, race.Fewer(20)))
	tryFamily(t, FullMemory, max(3, race.Fewer(5)))
}

// The same holds for a file system on a disk.
func TestFullDisk(t *testing.T) { tryFamily(t, FullDisk, 5) }

// A violation that a child reports is found, and so is an acknowledged job that its file
// lacks.
func TestFullCanFail(t *testing.T) {
	var u user
	u.rand = newRand(1)
	id := u.newID().String()
	known := "begin enqueue 0 " + id
	for _, test := range []struct {
		rule  string
		lines []string
		says  string
	}{
		{"a child tells what it met", []string{"violation a full disk has stopped the queue"}, "a full disk has stopped the queue"},
		{"an enqueue that was answered is in the file", []string{known, "done enqueue 0 " + id}, "is lost"},
		{"a file that is opened again has what was acknowledged", []string{known, "done enqueue 0 " + id, openLine}, "is lost"},
		{"a file that is opened again has nothing that was refused",
			[]string{known, "refused enqueue 0 " + id, foundLine + " " + id + " ready 0 0 false", openLine}, "and was"},
		{"what is found can be read", []string{foundLine + " nothing"}, "reported the job"},
		{"the story can be read", []string{"nonsense"}, "nonsense"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			path := t.TempDir() + "/" + queueName
			var h childReport
			err := h.hear(test.lines)
			if err == nil {
				err = h.check(t.Context(), path)
			}
			require.ErrorContains(t, err, test.says)
		})
	}
	var h childReport
	require.NoError(t, h.hear([]string{known, "refused enqueue 0 " + id, "note full"}))
	require.NoError(t, h.check(t.Context(), t.TempDir()+"/"+queueName))
	require.Equal(t, 1, h.notes[fullNote])
}

// A user's jobs follow from its seed, and their IDs are all different.
func TestUserIsRepeatable(t *testing.T) {
	a, b := user{rand: newRand(7)}, user{rand: newRand(7)}
	seen := make(map[string]bool)
	for range 100 {
		id := a.newID()
		require.Equal(t, id, b.newID())
		require.False(t, seen[id.String()])
		require.NoError(t, oracle.SameJob(oracle.JobOf(id)))
		seen[id.String()] = true
	}
}
