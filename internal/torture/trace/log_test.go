package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/torture/harness"
)

func TestMain(m *testing.M) {
	harness.Main()
	os.Exit(m.Run())
}

func init() { harness.Role("trace-test", everything) }

// everything does to a folder all that the log knows.
func everything(args harness.Args) error {
	in := func(name string) string { return filepath.Join(args[0], name) }
	f, err := os.Create(in("new"))
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { _, err := f.WriteString("abc"); return err },
		func() error { _, err := f.WriteAt([]byte("xyz"), 10); return err },
		func() error { return f.Truncate(20) },
		f.Sync,
		func() error { _, err := f.WriteString("d"); return err },
		f.Close,
		func() error { return os.Link(in("new"), in("linked")) },
		func() error { return os.Rename(in("linked"), in("old")) },
		func() error { return os.Remove(in("new")) },
		func() error { return syncFolder(args[0]) },
	}
	for n, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", n, err)
		}
		harness.Emit("done", n)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func folder(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

// The log has each operation of a process on the folder, once, in its order, with the lines that
// the process reported in between; and it explains every byte of the folder.
func TestLog(t *testing.T) {
	need.Server(t, Missing())
	dir, file := folder(t), filepath.Join(t.TempDir(), "calls")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), []byte("before"), 0o600))
	l, err := NewLog(dir)
	require.NoError(t, err)
	c, err := harness.Start(context.Background(), Wrap(file), "trace-test", dir)
	require.NoError(t, err)
	require.Len(t, c.Rest(), 10)
	require.Empty(t, c.Stderr())
	require.NoError(t, l.AddFile(file))
	require.Equal(t, []byte("before"), l.Files[l.Names["old"]])

	var got []string
	for _, e := range l.Events {
		if !e.Begin {
			continue
		}
		switch e.Kind {
		case Say:
			got = append(got, e.Text)
		case Write:
			got = append(got, fmt.Sprintf("write %d %d %s", e.File, e.At, e.Data))
		case Truncate:
			got = append(got, fmt.Sprintf("truncate %d %d", e.File, e.Size))
		default:
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", e.Kind, e.File, e.Name, e.To)))
		}
	}
	require.Equal(t, []string{
		"create 1 new", "write 1 0 abc", "done 0", "write 1 10 xyz", "done 1", "truncate 1 20", "done 2", "sync 1", "done 3",
		"write 1 3 d", "done 4", "done 5", "link 1 new linked", "done 6", "rename 1 linked old", "done 7", "unlink 1 new", "done 8",
		"syncfolder 0", "done 9",
	}, got)
	require.Equal(t, 1, l.Number("old"))
	require.Equal(t, -1, l.Number("new"))
}

// A log that does not explain the content of the folder is an error: with a write that is not in
// the log, every image would be wrong.
func TestLogThatMissesSomething(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "file")
	create := fmt.Sprintf("7 openat(AT_FDCWD, %s, O_RDWR|O_CREAT, 0600) = 5\n", quote(path))
	write := "7 pwrite64(5, " + quote("abc") + ", 3, 0) = 3\n"
	for _, test := range []struct {
		name, text, content string
		wrong               bool
	}{
		{"nothing", create + write, "abc", false},
		{"a write", create, "abc", true},
		{"a part of a write", create + write, "abcd", true},
		{"how the file came", "", "", true},
		{"where the file went", create + "7 link(" + quote(path) + ", " + quote(path+"2") + ") = 0\n", "", true},
		{"a way to write that the log does not know", create + "7 pwritev(5, [{iov_base=" + quote("abc") + ", iov_len=3}], 1, 0) = 3\n", "abc", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(path))
			l, err := NewLog(dir)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			err = l.Add(strings.NewReader(test.text))
			require.Equal(t, test.wrong, err != nil, "%v", err)
		})
	}
}

// Rule: if a process died inside a call, the effect of the call is read from the folder. A write
// may have happened in part. It ends with the process, so that the next process can sync it.
func TestKilledInside(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "file")
	for content, written := range map[string]string{"before": "", "aftore": "aft", "afterw": "afterw"} {
		require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
		l, err := NewLog(dir)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, l.Add(strings.NewReader(fmt.Sprintf("7 openat(AT_FDCWD, %s, O_RDWR) = 5\n7 pwrite64(5, %s, 6, 0 <unfinished ...>) = ?\n",
			quote(path), quote("afterw")))))
		require.Len(t, l.Events, 2, "it ends with the process")
		require.False(t, l.Events[1].Begin)
		require.Same(t, l.Events[0].Op, l.Events[1].Op)
		require.Equal(t, written == "", l.Events[0].Failed)
		require.Equal(t, written, string(l.Events[0].Data))
	}
}

// A sync that strace makes fail is in the log as a failed one.
func TestInjectedFailure(t *testing.T) {
	need.Server(t, Missing())
	dir, file := folder(t), filepath.Join(t.TempDir(), "calls")
	l, err := NewLog(dir)
	require.NoError(t, err)
	c, err := harness.Start(context.Background(), Wrap(file, "-e", "inject=fsync:error=EIO"), "trace-test", dir)
	require.NoError(t, err)
	c.Rest()
	require.Contains(t, c.Stderr(), syscall.EIO.Error())
	require.NoError(t, l.AddFile(file))
	last := l.Events[len(l.Events)-1]
	require.Equal(t, Sync, last.Kind)
	require.True(t, last.Failed)
}

func quote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return `"` + b.String() + `"`
}
