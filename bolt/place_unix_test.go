//go:build unix

package bolt

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/kills"
)

func init() { roles["stranger"] = otherUserRole }

// otherUserRole opens files as an ordinary user, first normally, then without the check for
// safety.
func otherUserRole(args []string) error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(otherUserID); err != nil {
			return err
		}
	}
	for _, path := range args {
		for _, insecure := range []bool{false, true} {
			o := quiet()
			o.Insecure = insecure
			q, err := Open(path, o)
			if err == nil {
				err = q.Close()
			}
			kills.Say(err)
		}
	}
	return nil
}

const otherUserID = 65534

// Rule: a queue is not opened for writing if another user could write to its file or replace
// it, unless the options allow it. The error says what to do.
func TestOpenOfWhatIsNotSafe(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	sound := soundFile(t)
	base, err := os.MkdirTemp("", "pawl-test-") // which every user may enter
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755))
	for _, test := range []struct {
		rule                   string
		fileOwner, folderOwner int
		file, folder           fs.FileMode
		says                   string // "" for no error
	}{
		{rule: "a file of one's own in a folder of one's own", fileOwner: otherUserID, folderOwner: otherUserID, file: 0o600, folder: 0o700},
		{rule: "others may read", fileOwner: otherUserID, folderOwner: otherUserID, file: 0o644, folder: 0o755},
		{rule: "the group may write: its members are trusted", fileOwner: otherUserID, folderOwner: otherUserID, file: 0o660, folder: 0o770},
		{rule: "a folder of the superuser's", fileOwner: otherUserID, folderOwner: 0, file: 0o600, folder: 0o755},
		{rule: "a folder such as /tmp", fileOwner: otherUserID, folderOwner: 0, file: 0o600, folder: 0o777 | fs.ModeSticky},
		{rule: "a file that everybody may write to", fileOwner: otherUserID, folderOwner: otherUserID, file: 0o666, folder: 0o700,
			says: "everybody may write to the file"},
		{rule: "a folder that everybody may write to", fileOwner: otherUserID, folderOwner: otherUserID, file: 0o600, folder: 0o777,
			says: "everybody may write to the folder"},
		{rule: "a file of somebody else's", fileOwner: 4321, folderOwner: otherUserID, file: 0o666, folder: 0o700,
			says: "belongs to user 4321, and this is user 65534; run as its owner, chown it, or set Options.Insecure"},
		{rule: "a folder of somebody else's", fileOwner: otherUserID, folderOwner: 4321, file: 0o600, folder: 0o777 | fs.ModeSticky,
			says: "belongs to user 4321"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder, err := os.MkdirTemp(base, "")
			require.NoError(t, err)
			path := filepath.Join(folder, "jobs.db")
			require.NoError(t, os.WriteFile(path, sound, 0o600))
			require.NoError(t, os.Chown(path, test.fileOwner, -1))
			require.NoError(t, os.Chmod(path, test.file))
			require.NoError(t, os.Chown(folder, test.folderOwner, -1))
			require.NoError(t, os.Chmod(folder, test.folder))

			c := kills.Start(t, "stranger", path)
			err1, err2 := c.Line(t), c.Line(t)
			require.Equal(t, "<nil>", err2, "Insecure takes it as it is")
			if test.says == "" {
				require.Equal(t, "<nil>", err1)
				return
			}
			require.Contains(t, err1, ErrInsecure.Error())
			require.Contains(t, err1, test.says)
			require.Contains(t, err1, folder, "it is named")
		})
	}
}

// Rule: Open's open refuses a link, even if it is created after the check.
func TestNoFollowRefusesALink(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
	require.NoError(t, os.Symlink(path, path+".link"))
	_, err := os.OpenFile(path+".link", os.O_RDWR|syscall.O_NOFOLLOW, 0)
	require.ErrorIs(t, err, syscall.ELOOP)
}

// Rule: in a folder such as /tmp anybody can leave a file that looks like a marker. Only a
// marker of the owner, the superuser or this user counts.
func TestMarkOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	require.NoError(t, q.Close())
	require.NoError(t, os.Chown(path, 4321, 4321))
	require.NoError(t, dbfile.Mark(path, 3))
	for _, test := range []struct {
		owner int
		ok    bool
	}{{0, true}, {4321, true}, {otherUserID, false}} {
		require.NoError(t, os.Chown(MarkPath(path), test.owner, -1))
		_, ok, err := dbfile.Marked(path)
		require.NoError(t, err)
		require.Equal(t, test.ok, ok, "a mark of user %d", test.owner)
	}
	q = openAt(t, path, nil)
	require.NotNil(t, find(t, q, id))
	require.FileExists(t, MarkPath(path), "it is not ours to remove")
}

// Rule: if the superuser repairs a file, the file still belongs to its owner.
func TestRepairedFileKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	failSync(t, path, failedSyncs[0].commit)
	require.NoError(t, os.Chown(path, 4321, 1234))
	openAt(t, path, nil)
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	require.Equal(t, []uint32{4321, 1234}, []uint32{stat.Uid, stat.Gid})
}

// Rule: no file is created in a folder in which a queue would not be opened.
func TestNothingIsMadeInAnUnsafeFolder(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o777))
	_, err := Open(filepath.Join(folder, "jobs.db"), quiet())
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, "set Options.Insecure")
	require.Empty(t, snapshot(t, folder))
	openAt(t, filepath.Join(folder, "jobs.db"), &Options{Insecure: true})
}
