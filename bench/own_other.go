//go:build !linux

package main

import (
	"errors"
	"fmt"
	"runtime"
)

// errUnsupported is the answer to what only Linux tells.
var errUnsupported = fmt.Errorf("%w on %s, only on linux", errors.ErrUnsupported, runtime.GOOS)

func freeSpace(string) (int64, error) { return 0, errUnsupported }

func dropCache(string) error { return errUnsupported }

func bytesWritten() (int64, error) { return 0, errUnsupported }

func usageOf(int) (usage, error) { return usage{}, errUnsupported }
