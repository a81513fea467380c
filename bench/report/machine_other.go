//go:build !linux

package report

import "os"

func syncData(f *os.File) error { return f.Sync() }

func fileSystem(string) string { return "" }
