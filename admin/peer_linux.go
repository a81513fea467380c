package admin

import (
	"net"
	"syscall"
)

// beforeBind sets the mode that the socket has when it appears in its folder. Linux uses the
// mode of the bound socket, so no other mode is ever visible.
func beforeBind(c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}

// peerUser returns the user whose process is at the other end of a socket.
func peerUser(conn net.Conn) (uid int, known bool) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	c, err := raw.SyscallConn()
	if err != nil {
		return 0, false
	}
	var peer *syscall.Ucred
	if e := c.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); e != nil || err != nil {
		return 0, false
	}
	return int(peer.Uid), true
}
