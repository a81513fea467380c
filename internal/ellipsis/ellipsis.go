// Package ellipsis shortens texts.
package ellipsis

import (
	"fmt"
	"unicode/utf8"
)

// Truncate shortens a text to at most n bytes, 3 or more, at the end of a character.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for at := n; at > 0 && at > n-utf8.UTFMax; at-- { // where nothing is a character, anywhere
		if utf8.RuneStart(s[at]) {
			return s[:at] + mark
		}
	}
	return s[:n] + mark
}

// Abbreviate shortens a refused value to its first n bytes for an error message, which then says how
// many bytes the value has.
func Abbreviate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:n], len(s))
}
