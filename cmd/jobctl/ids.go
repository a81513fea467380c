package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
)

// readIDs parses the IDs among the arguments of a command, and those on standard input in place
// of a "-". A duplicate counts once. All IDs must be valid before the command does anything.
func (a *app) readIDs(command string, args []string) ([]pawl.ID, error) {
	return readNames(a, args, bufio.ScanWords, "ID", func(text string) (pawl.ID, error) {
		id, err := pawl.ParseID(text)
		if err != nil {
			return id, usage(command, "%s", err)
		}
		return id, nil
	})
}

// readNames parses each argument, and each name on standard input in place of a "-". A duplicate
// counts once. If there is an argument, there must be at least one name.
func readNames[T comparable](a *app, args []string, split bufio.SplitFunc, noun string, parse func(string) (T, error)) (all []T, err error) {
	seen := make(map[T]bool)
	add := func(text string) error {
		one, err := parse(text)
		if err == nil && !seen[one] {
			seen[one] = true
			all = append(all, one)
		}
		return err
	}
	for _, arg := range args {
		if arg != "-" {
			if err := add(arg); err != nil {
				return nil, err
			}
			continue
		}
		names := bufio.NewScanner(a.stdin)
		names.Split(split)
		for names.Scan() {
			if name := strings.TrimSpace(names.Text()); name != "" {
				if err := add(name); err != nil {
					return nil, err
				}
			}
		}
		if err := names.Err(); err != nil {
			return nil, fmt.Errorf("read %ss from standard input: %w", noun, err)
		}
	}
	if len(args) > 0 && len(all) == 0 {
		return nil, &failure{exitNoMatch, "there is no " + noun + " on standard input", ""}
	}
	return all, nil
}
