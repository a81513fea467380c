package main

import (
	"bufio"
	"fmt"

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
	for _, arg := range args {
		if arg != "-" {
			if err := add(arg); err != nil {
				return nil, err
			}
			continue
		}
		words := bufio.NewScanner(a.stdin)
		words.Split(bufio.ScanWords)
		for words.Scan() {
			if err := add(words.Text()); err != nil {
				return nil, err
			}
		}
		if err := words.Err(); err != nil {
			return nil, fmt.Errorf("read IDs from standard input: %w", err)
		}
	}
	if len(args) > 0 && len(ids) == 0 {
		return nil, &failure{exitNoMatch, "there is no ID on standard input", ""}
	}
	return ids, nil
}
