//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "testing"

func lockFree(*testing.T, string) {}

func makePipe(t *testing.T, _ string) { t.Skip("this system has no pipes with a name") }
