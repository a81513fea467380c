package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopawl/pawl/examples/internal/itself"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { itself.Main(main, m.Run) }

// makeTree writes n files of random content, some with names that need escaping,
// and returns the manifest that is to come out.
func makeTree(t *testing.T, root string, n int) string {
	t.Helper()
	var lines []string
	for i := range n {
		name := filepath.Join(fmt.Sprintf("d%02d", i%37), fmt.Sprintf("f%05d", i))
		switch i % 101 {
		case 3:
			name += "with\nnewline"
		case 5:
			name += `with\backslash`
		case 7:
			name += "with  two spaces and ünïcode"
		case 9:
			name += "\xff not UTF-8"
		}
		content := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, i%977)
		path := root + "/" + name
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, content, 0o644))
		lines = append(lines, path+"\x00"+fmt.Sprintf("%x", sha256.Sum256(content)))
	}
	slices.Sort(lines)
	var want strings.Builder
	for _, line := range lines {
		path, sum, _ := strings.Cut(line, "\x00")
		if strings.ContainsAny(path, "\\\n") {
			path = `\` + sum + "  " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(path)
			fmt.Fprintln(&want, path)
			continue
		}
		fmt.Fprintf(&want, "%s  %s\n", sum, path)
	}
	return want.String()
}

// result is what a run of the program gave.
type result struct {
	code           int
	stdout, stderr string
}

func checksum(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

func manifest(t *testing.T, state string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(state, "manifest.sha256"))
	require.NoError(t, err)
	return string(b)
}

// Rule: killed at any moment and started again, it goes on where it was, and the
// manifest has every file once.
func TestKilledFiveTimes(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(memdir.New(t), "state")
	want := makeTree(t, root, 3000)
	kills := 0
	for limit := 150 * time.Millisecond; kills < 5; {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(limit))
		cmd := itself.Command(ctx, "-state", state, root)
		out, err := cmd.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() == -1, errors.Is(err, context.DeadlineExceeded):
			kills++
		case err == nil && strings.Contains(string(out), "3000 files in"):
			// It was faster than the kills: start over and kill sooner.
			require.Equal(t, want, manifest(t, state))
			require.NoError(t, os.RemoveAll(state))
			kills, limit = 0, limit/2
		default:
			require.NoError(t, err, "%s", out)
		}
	}
	r := checksum(t, "-state", state, root)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, want, manifest(t, state))
}

// Rule: the manifest is what sha256sum accepts.
func TestSha256sumAcceptsManifest(t *testing.T) {
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum is not installed")
	}
	root, state := t.TempDir(), filepath.Join(memdir.New(t), "state")
	makeTree(t, root, 300)
	require.Equal(t, 0, checksum(t, "-state", state, root).code)
	out, err := exec.Command(tool, "-c", "--quiet", "--strict", filepath.Join(state, "manifest.sha256")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Rule: started again when finished, it says so and changes nothing.
func TestFinishedStaysFinished(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(memdir.New(t), "state")
	makeTree(t, root, 20)
	require.Equal(t, 0, checksum(t, "-state", state, root).code)
	before := manifest(t, state)
	require.NoError(t, os.WriteFile(filepath.Join(root, "late"), []byte("late"), 0o644))
	r := checksum(t, "-state", state, root)
	require.Equal(t, 0, r.code)
	require.Contains(t, r.stdout, "already finished: 20 files")
	require.Equal(t, before, manifest(t, state))
}

// Rule: a file that vanished is retried, ends as a dead job and is reported;
// all others are in the manifest.
func TestVanishedFileIsReported(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(memdir.New(t), "state")
	want := makeTree(t, root, 20)
	gone := filepath.Join(root, "gone")
	require.NoError(t, os.WriteFile(gone, nil, 0o644))

	// Plan with the file there, and interrupt before any is summed.
	r := &runner{state: state, root: root, slots: 1, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	planOnly(t, r)
	require.NoError(t, os.Remove(gone))

	got := checksum(t, "-state", state, root)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, fmt.Sprintf("file not read: %q after 4 attempts", gone))
	require.Equal(t, want, manifest(t, state))

	again := checksum(t, "-state", state, root)
	require.Equal(t, 1, again.code, "it stays unfinished business")
	require.Contains(t, again.stdout, "already finished")
	require.Contains(t, again.stderr, "file not read")
}

// planOnly runs the first step of the program alone.
func planOnly(t *testing.T, r *runner) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, os.MkdirAll(r.state, 0o700))
	q, err := r.openQueue()
	require.NoError(t, err)
	defer q.Close()
	sums, err := openSums(filepath.Join(r.state, "sums.log"))
	require.NoError(t, err)
	defer sums.Close()
	p, err := r.loadPlan()
	require.NoError(t, err)
	require.NoError(t, r.enqueueAll(ctx, q, p, sums))
}

// Rule: the state folder is not summed, also when it lies below the folder, and only
// regular files are.
func TestLeavesOutStateAndSpecialFiles(t *testing.T) {
	root := t.TempDir()
	want := makeTree(t, root, 5)
	require.NoError(t, os.Symlink(filepath.Join(root, "d00", "f00000"), filepath.Join(root, "link")))
	state := filepath.Join(root, "checksum.state")
	require.Equal(t, 0, checksum(t, "-state", state, root).code)
	require.Equal(t, want, manifest(t, state))
}

// Rule: bad input gets a clear error and the right exit code.
func TestBadInput(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(memdir.New(t), "state")
	makeTree(t, root, 3)
	require.Equal(t, 2, checksum(t).code)
	require.Equal(t, 2, checksum(t, "-j", "0", root).code)
	require.Equal(t, 1, checksum(t, "-state", state, root+"/nothing").code)
	require.Equal(t, 1, checksum(t, "-state", state, filepath.Join(root, "d00", "f00000")).code)
	require.Equal(t, 0, checksum(t, "-state", state, root).code)
	other := checksum(t, "-state", state, t.TempDir())
	require.Equal(t, 1, other.code)
	require.Contains(t, other.stderr, "use another -state")
}

// Rule: what was being written when the program died is cut off, and nothing before
// it is lost.
func TestTornSumsAreCutOff(t *testing.T) {
	path := filepath.Join(memdir.New(t), "sums.log")
	sum := strings.Repeat("ab", sha256.Size)
	whole := formatLine("a", sum) + formatLine("b\nb", sum)
	for _, tail := range []string{"", "a", sum, sum + "  c", strings.Repeat("\x00", 100)} {
		require.NoError(t, os.WriteFile(path, []byte(whole+tail), 0o600))
		s, err := openSums(path)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": sum, "b\nb": sum}, s.byPath)
		require.NoError(t, s.Add("c", sum))
		require.NoError(t, s.Close())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole+formatLine("c", sum), string(b))
	}
}

// Rule: many sums that come at once are all in the file when their Adds return.
func TestAddsShareSyncs(t *testing.T) {
	path := filepath.Join(memdir.New(t), "sums.log")
	s, err := openSums(path)
	require.NoError(t, err)
	sum := strings.Repeat("cd", sha256.Size)
	errs := make(chan error)
	const n = 500
	for i := range n {
		go func() { errs <- s.Add(fmt.Sprint(i), sum) }()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	require.NoError(t, s.Close())
	again, err := openSums(path)
	require.NoError(t, err)
	require.Len(t, again.byPath, n)
	require.NoError(t, again.Close())
}
