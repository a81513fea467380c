package admin

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// beforeBind does nothing: the mode of the socket is set when it is there. Nobody else can
// enter its folder meanwhile.
func beforeBind(syscall.RawConn) error { return nil }

// peerUser is the user whose process is at the other end of a socket.
func peerUser(conn net.Conn) (uid int, known bool) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	c, err := raw.SyscallConn()
	if err != nil {
		return 0, false
	}
	var peer *unix.Xucred
	if e := c.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); e != nil || err != nil {
		return 0, false
	}
	return int(peer.Uid), true
}
