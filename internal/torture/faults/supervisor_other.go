//go:build !linux || !(amd64 || arm64)

package faults

import (
	"context"
	"errors"
)

func supervise(context.Context, string, []string, func(int, call) fault, string, ...any) (ran, error) {
	return ran{}, errors.New("needs Linux on amd64 or arm64")
}
