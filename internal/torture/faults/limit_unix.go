//go:build linux || darwin

package faults

import (
	"os"
	"os/signal"
	"syscall"
)

func missingLimit() string { return "" }

// fileLimit forbids the file to grow beyond a byte: any one of those in use, the end of
// them, or of the file. In the first case writes in place are refused too, and what crosses
// the limit is written in part.
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
	metas := 2 * uint64(os.Getpagesize()) // they lie in place: no disk is too full for them
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
