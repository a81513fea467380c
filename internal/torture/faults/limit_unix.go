//go:build linux || darwin

package faults

import (
	"os"
	"os/signal"
	"syscall"
)

func missingLimit() string { return "" }

// fileLimit limits the size of the file: to a random byte of the used part, to its end, or to
// the size of the file. In the first case, the system also refuses writes in place, and does
// only a part of a write that crosses the limit.
func fileLimit(f *filler) (giveBack func() error, sure bool, err error) {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return nil, false, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, false, err
	}
	limit := before
	metas := 2 * uint64(os.Getpagesize()) // a full disk still accepts writes to them
	switch f.rand.IntN(3) {
	case 0:
		limit.Cur = metas + f.rand.Uint64N(f.used-metas)
	case 1:
		limit.Cur, sure = f.used, true
	default:
		limit.Cur, sure = uint64(info.Size()), true
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return nil, false, err
	}
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }, sure, nil
}
