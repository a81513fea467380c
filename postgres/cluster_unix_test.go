//go:build unix

package postgres_test

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns how to run the server, which refuses to run as root: as the user postgres,
// who gets the folder. A signal from the terminal does not reach it.
func unprivileged(folder string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{Setsid: true}, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}},
		os.Chown(folder, int(uid), int(gid))
}
