//go:build !unix

package main

import (
	"errors"
	"os"
)

func freeze(*os.Process) error { return errors.ErrUnsupported }
