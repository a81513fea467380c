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
	var ids []pawl.ID
	seen := make(map[pawl.ID]bool)
	add := func(text string) error {
		id, err := pawl.ParseID(text)
		if err != nil {
			return usage(command, "%s", err)
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return nil
	}
	return ids, a.eachName(args, bufio.ScanWords, "ID", add)
}

// eachName calls add for each argument, and for each name on standard input in place of a "-".
// If there is an argument, there must be at least one name.
func (a *app) eachName(args []string, split bufio.SplitFunc, noun string, add func(string) error) error {
	found := false
	for _, arg := range args {
		if arg != "-" {
			found = true
			if err := add(arg); err != nil {
				return err
			}
			continue
		}
		names := bufio.NewScanner(a.stdin)
		names.Split(split)
		for names.Scan() {
			name := strings.TrimSpace(names.Text())
			if name == "" {
				continue
			}
			found = true
			if err := add(name); err != nil {
				return err
			}
		}
		if err := names.Err(); err != nil {
			return fmt.Errorf("read %ss from standard input: %w", noun, err)
		}
	}
	if len(args) > 0 && !found {
		return &failure{exitNoMatch, "there is no " + noun + " on standard input", ""}
	}
	return nil
}
