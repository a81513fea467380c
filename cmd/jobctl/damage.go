package main

import (
	"fmt"
	"strings"
)

// shownDamage is how many damaged records are named; the rest are counted.
const shownDamage = 10

// damage collects the records that could not be read.
type damage struct {
	count int
	first []string
}

func (d *damage) add(err error) {
	if d.count++; len(d.first) < shownDamage {
		d.first = append(d.first, err.Error())
	}
}

// err returns nil if nothing was damaged.
func (d *damage) err() error {
	if d.count == 0 {
		return nil
	}
	next := strings.Join(d.first, "\n")
	if more := d.count - len(d.first); more > 0 {
		next += fmt.Sprintf("\nand %d more", more)
	}
	return &failure{exitDamaged, fmt.Sprintf("%s could not be read and %s skipped:", plural(d.count, "damaged job"), wasWere(d.count)),
		next + "\nThey were not changed. Keep a copy of the file, and restore them from a backup."}
}
