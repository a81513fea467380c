package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits on a text, so that a small one cannot demand much memory. A line of an export needs 5
// levels and 200 elements, for the failures of a history; the reader of a payload limits its
// values.
const (
	maxNesting   = 64
	lineElements = 4096 // in objects and lists at the levels that are fields of an export
	fieldLevels  = 3
	maxNames     = 4096 // names of one object that are compared with each other
)

// strictJSON rejects a text that is not one JSON value, and ambiguous or invalid input that
// encoding/json accepts: bytes that are not UTF-8, and a duplicate name in an object. In the
// outer levels no object or list has more than maxElements elements.
func strictJSON(text []byte, maxElements, levels int) error {
	if !utf8.Valid(text) {
		return errors.New("it has bytes that are not UTF-8")
	}
	if !json.Valid(text) {
		return fmt.Errorf("it is not JSON: %w", json.Unmarshal(text, new(json.RawMessage)))
	}
	var open []container
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if len(open) == maxNesting {
				return fmt.Errorf("its objects and lists lie in one another more than %d deep", maxNesting)
			}
			open = pushed(open)
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			last := &open[len(open)-1]
			if last.commas++; last.commas >= maxElements && len(open) <= levels {
				return fmt.Errorf("%w than %d elements", errManyElements, maxElements)
			}
		case '"':
			begin := i
			i = closing(text, i)
			if beforeColon(text[i+1:]) && len(open) <= levels+1 {
				if err := open[len(open)-1].named(text[begin : i+1]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var errManyElements = errors.New("an object or a list has more")

// container is an open object or list.
type container struct {
	commas int
	few    [][]byte        // the first names of an object
	many   map[string]bool // the other names
}

// pushed opens another container, and reuses the memory of a closed one.
func pushed(open []container) []container {
	if len(open) == cap(open) {
		return append(open, container{})
	}
	open = open[:len(open)+1]
	last := &open[len(open)-1]
	*last = container{few: last.few[:0]}
	return open
}

// fewNames is how many names are compared one by one.
const fewNames = 64

// named records the name of an element, which must be new.
func (c *container) named(quoted []byte) error {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return err
		}
		name = []byte(text)
	}
	if c.many[string(name)] || slices.ContainsFunc(c.few, func(other []byte) bool { return bytes.Equal(name, other) }) {
		return fmt.Errorf("an object has the name %q twice", truncate(string(name)))
	}
	switch {
	case len(c.few) < fewNames:
		c.few = append(c.few, name)
	case c.many == nil:
		c.many = make(map[string]bool)
		fallthrough
	case len(c.many) < maxNames:
		c.many[string(name)] = true
	}
	return nil
}

// closing returns where the string that begins at i ends, in valid JSON.
func closing(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// beforeColon reports whether the string that ends before rest is a name.
func beforeColon(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
}
