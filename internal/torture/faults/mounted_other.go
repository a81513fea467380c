//go:build !linux

package faults

import (
	"context"
	"errors"
)

var errNoMounts = errors.New("needs Linux")

func makeImage(string, string) (string, error) { return "", errNoMounts }

func runMounted(context.Context, string, string, string, string, uint64) ([]string, string, error) {
	return nil, "", errNoMounts
}
