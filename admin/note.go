package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The folder beside a queue's file <file> is <file>.admin. It contains these files.
const (
	folderSuffix = ".admin"
	socketName   = "socket"
	noteName     = "server.json"
)

const (
	maxSocketPath = 100 // bytes; systems permit 104 or 108, including a final zero
	maxNote       = 16 << 10
)

// place is where a queue is, or would be, served.
type place struct {
	file   string // its real path, the same for an app that uses a link
	folder string
	note   string
	socket string // one of two paths: folder/socket, or the result of runtimeSocket
}

// placeOf returns the place of the file at path.
func placeOf(path string) (place, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return place{}, err
	}
	folder := path + folderSuffix
	return place{file: path, folder: folder, note: filepath.Join(folder, noteName), socket: filepath.Join(folder, socketName)}, nil
}

// CheckNewFile rejects the path of a new file if it belongs to the queue in file: the file
// itself, the folder of the socket with everything in it, and what the engine keeps beside the
// file, such as bolt.MarkPath. The error is a *pawl.InvalidError.
func CheckNewFile(file, path string, beside ...func(file string) string) error {
	own, err := resolved(file)
	if err != nil {
		return err
	}
	name, err := resolved(path)
	if err != nil {
		return err
	}
	folder := own + folderSuffix
	taken := name == own || name == folder || strings.HasPrefix(name, folder+string(filepath.Separator))
	for _, of := range beside {
		taken = taken || name == of(own)
	}
	if taken {
		return invalid("path", "%s belongs to the queue in %s; name another file", path, file)
	}
	return nil
}

// resolved returns the absolute path of a file that may be missing. It follows links on the way
// to the file's folder, and a link at the file itself if its target exists.
func resolved(path string) (string, error) {
	// Abs and Dir must not come first: they remove "link/.." textually.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return filepath.Abs(real)
	}
	folder, name := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
	if real, err := filepath.EvalSymlinks(folder + "."); err == nil {
		return filepath.Abs(filepath.Join(real, name))
	}
	return filepath.Abs(path) // its folder is missing, so no file can be created there
}

// runtimeName returns the name of the socket of a file in a folder that many files share.
func (p place) runtimeName() string {
	hash := sha256.Sum256([]byte(p.file))
	return hex.EncodeToString(hash[:12]) + ".socket"
}

// noteBody is the note that a server writes.
type noteBody struct {
	Address string `json:"address"`
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Version string `json:"version"` // version of this library
	API     string `json:"api"`
	Started Stamp  `json:"started_at"`
}

// writeNote writes the note atomically, because a client may look for a server that is starting.
// It replaces a note of a killed process.
func (p place) writeNote(process Process) (os.FileInfo, error) {
	b, err := json.MarshalIndent(noteBody{
		Address: "unix://" + p.socket, PID: process.PID, Name: process.Name, Version: process.Version,
		API: apiVersion, Started: Stamp{process.Started},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	unfinished := p.note + ".new"
	_ = os.Remove(unfinished)
	f, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("leave a note: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Chmod(0o600)) // whatever the umask was
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err == nil {
		err = os.Rename(unfinished, p.note)
	}
	if err != nil {
		return nil, fmt.Errorf("leave a note: %w", errors.Join(err, os.Remove(unfinished)))
	}
	return info, nil
}

// readNote returns the address of the app that serves the file, or fs.ErrNotExist. It trusts
// only a note that the owner of the file, the superuser or this user wrote, and that no other
// user could have written.
func (p place) readNote() (noteBody, error) {
	var n noteBody
	trusted := p.trusts
	if err := checkFolder(p.folder, trusted); err != nil {
		return n, err
	}
	f, err := os.OpenFile(p.note, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return n, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return n, err
	}
	if !info.Mode().IsRegular() || !private(info) || !trusted(ownerOf(info)) {
		return n, fmt.Errorf("%w: %s is no file of the queue's owner alone", ErrDistrusted, p.note)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return n, fmt.Errorf("%w: %s is no note: %w", fs.ErrNotExist, p.note, err)
	}
	return n, p.checkAddress(n.Address, trusted)
}

// checkAddress accepts only the two places where a server of this file can be.
func (p place) checkAddress(address string, trusted func(int) bool) error {
	socket, ok := strings.CutPrefix(address, "unix://")
	if ok && socket == p.socket {
		return nil
	}
	shared := filepath.Dir(socket)
	if !ok || !filepath.IsAbs(socket) || filepath.Clean(socket) != socket ||
		filepath.Base(socket) != p.runtimeName() || !strings.HasPrefix(filepath.Base(shared), runtimeFolder) {
		return fmt.Errorf("%w: %s names %q, where no server of this file can be", ErrDistrusted, p.note, truncate(address))
	}
	return checkFolder(shared, trusted)
}

// runtimeFolder is the prefix of the folder for sockets whose path would be too long beside
// their files.
const runtimeFolder = "pawl"

// checkFolder requires a real folder, not a link to one, that only its owner can enter. The
// owner must be trusted.
func checkFolder(folder string, trusted func(uid int) bool) error {
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no folder", ErrDistrusted, folder)
	case !trusted(ownerOf(info)):
		return fmt.Errorf("%w: the folder %s belongs to user %d", ErrDistrusted, folder, ownerOf(info))
	case !private(info):
		return fmt.Errorf("%w: others may enter the folder %s (mode %04o)", ErrDistrusted, folder, info.Mode().Perm())
	}
	return nil
}

func private(info os.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// trusts reports whether a user could have written the queue's file: its owner, the superuser or
// this user.
func (p place) trusts(uid int) bool {
	if uid == 0 || uid == os.Geteuid() {
		return true
	}
	info, err := os.Stat(p.file)
	return err == nil && uid == ownerOf(info)
}
