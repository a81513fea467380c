//go:build unix

package cluster

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the user and group who run servers, since these refuse to run as root. Ok is false
// if this process may run them itself.
func owner() (uid, gid int, ok bool, err error) {
	if os.Getuid() != 0 {
		return 0, 0, false, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, false, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	if uid, err = strconv.Atoi(who.Uid); err == nil {
		gid, err = strconv.Atoi(who.Gid)
	}
	return uid, gid, true, err
}

// attributes has a process run as the owner, in a session of its own.
func attributes() (*syscall.SysProcAttr, error) {
	uid, gid, ok, err := owner()
	if !ok {
		return &syscall.SysProcAttr{Setsid: true}, err
	}
	return &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// give makes a folder the owner's.
func give(folder string) error {
	uid, gid, ok, err := owner()
	if !ok {
		return err
	}
	return os.Chown(folder, uid, gid)
}
