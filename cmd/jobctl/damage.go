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

// damaged returns the error of damage to things of that name; nil if nothing was damaged.
func (a *app) damaged(d *damage, noun string) error {
	if d.count == 0 {
		return nil
	}
	next := strings.Join(d.first, "\n")
	if more := d.count - len(d.first); more > 0 {
		next += fmt.Sprintf("\nand %d more", more)
	}
	const restore = "\nThey were not changed. Restore them from a backup."
	return &failure{exitDamaged, fmt.Sprintf("%s could not be read and %s skipped:", plural(d.count, "damaged "+noun), wasWere(d.count)),
		next + a.by("\nThey were not changed. Keep a copy of the file, and restore them from a backup.", restore, restore)}
}
