// Package pawl stands in for the library.
package pawl

import "time"

type ID [16]byte

func NewID(now time.Time) (id ID) { return id }
