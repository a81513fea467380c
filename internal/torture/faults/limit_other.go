//go:build !linux && !darwin

package faults

import "errors"

func missingLimit() string { return "needs Linux or macOS" }

func fileLimit(*filler) (func() error, bool, error) { return nil, false, errors.New(missingLimit()) }
