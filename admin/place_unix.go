//go:build unix

package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// noFollow makes open reject a link, and not wait for the other end of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ownerOf returns the user who owns a file.
func ownerOf(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// again reports that the backlog of the app's socket is full.
func again(err error) bool { return errors.Is(err, syscall.EAGAIN) }

// openable returns how many files this process may have open.
func openable() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}

// refusedByMode reports that the system does not let this user connect to the socket.
func refusedByMode(err error) bool { return errors.Is(err, fs.ErrPermission) }

// listen creates the socket and listens on it. At no moment can another user connect:
//
//  1. create the folder, or check that this user owns it; nobody else can enter it
//  2. remove what a killed app left: the server holds the file's lock, so that app is
//     gone
//  3. create the socket for its owner alone, see beforeBind, and listen
func (p *place) listen() (net.Listener, os.FileInfo, error) {
	if err := ownFolder(p.folder); err != nil {
		return nil, nil, err
	}
	if len(p.socket) > maxSocketPath {
		shared, err := sharedFolder()
		if err != nil {
			return nil, nil, err
		}
		p.socket = filepath.Join(shared, p.runtimeName())
		if len(p.socket) > maxSocketPath {
			return nil, nil, fmt.Errorf("the path of the socket would be too long, here and as %s; set TMPDIR to a shorter one", p.socket)
		}
	}
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("replace what a killed app left: %w", err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return beforeBind(c) }}
	l, err := config.Listen(context.Background(), "unix", p.socket)
	if err != nil {
		return nil, nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it would unlink by name; see removeSame
	info, err := os.Lstat(p.socket)
	if err == nil && info.Mode().Perm() != 0o600 { // beforeBind could not set it
		if err = os.Chmod(p.socket, 0o600); err == nil {
			info, err = os.Lstat(p.socket)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close(), os.Remove(p.socket))
	}
	return l, info, nil
}

// ownFolder creates a folder that only this user can enter, or takes over one that this user
// owns.
func ownFolder(folder string) error {
	err := os.Mkdir(folder, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder for the socket: %w; let this user write to %s, or mount admin.Handler in a server of the app's", err, filepath.Dir(folder))
	}
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no folder, where the one for the socket should be; remove it", ErrDistrusted, folder)
	case ownerOf(info) != os.Geteuid():
		return fmt.Errorf("%w: the folder %s belongs to user %d, and this is user %d; remove it, or run as its owner", ErrDistrusted, folder, ownerOf(info), os.Geteuid())
	case info.Mode().Perm() == 0o700:
		return nil
	}
	// This user owns it, but another umask or a later change opened it.
	return os.Chmod(folder, 0o700)
}

// sharedFolder returns the folder for sockets whose paths would be too long beside their files.
func sharedFolder() (string, error) {
	folder := filepath.Join(os.TempDir(), runtimeFolder+"-"+strconv.Itoa(os.Geteuid()))
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && ownerOf(info) == os.Geteuid() {
			folder = filepath.Join(dir, runtimeFolder)
		}
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return folder, ownFolder(folder)
}
