package postgres

import (
	"slices"
	"strings"

	"github.com/gopawl/pawl/driver"
)

// bound is the end of a range of keys: the first key after it, or none.
type bound struct {
	key  string
	last bool // there is no key after the range
}

// before reports whether a range to b ends before one to c.
func (b bound) before(c bound) bool { return !b.last && (c.last || b.key < c.key) }

// follows reports whether a key lies behind a range to b.
func (b bound) follows(key string) bool { return !b.last && key >= b.key }

// end returns the bound as a parameter: nil for none.
func (b bound) end() []byte {
	if b.last {
		return nil
	}
	return []byte(b.key)
}

// prefixEnd returns the bound of the keys with a prefix.
func prefixEnd(prefix []byte) bound {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] < 0xff {
			return bound{key: string(prefix[:n-1]) + string([]byte{prefix[n-1] + 1})}
		}
	}
	return bound{last: true}
}

// limits returns the range of a span.
func limits(s driver.Span) (from string, to bound) {
	return max(string(s.Prefix), string(s.From)), prefixEnd(s.Prefix)
}

// keyRange is a range of keys.
type keyRange struct {
	from string
	to   bound
}

// keyRanges are ranges in order, which neither overlap nor touch.
type keyRanges []keyRange

// add adds a range.
func (rs *keyRanges) add(from string, to bound) {
	if to.follows(from) {
		return // it is empty
	}
	first, _ := slices.BinarySearchFunc(*rs, from, func(r keyRange, from string) int {
		if !r.to.last && r.to.key < from {
			return -1
		}
		return 1
	})
	end := first
	for ; end < len(*rs) && (to.last || (*rs)[end].from <= to.key); end++ {
		from = min(from, (*rs)[end].from)
		if to.before((*rs)[end].to) {
			to = (*rs)[end].to
		}
	}
	*rs = slices.Replace(*rs, first, end, keyRange{from, to})
}

// at returns the end of the range that has a key.
func (rs keyRanges) at(key string) (to bound, ok bool) {
	i, found := slices.BinarySearchFunc(rs, key, func(r keyRange, key string) int { return strings.Compare(r.from, key) })
	if !found {
		i--
	}
	if i < 0 || rs[i].to.follows(key) {
		return bound{}, false
	}
	return rs[i].to, true
}

// below returns the beginning of the range that includes the keys right before a
// bound.
func (rs keyRanges) below(b bound) (from string, ok bool) {
	for _, r := range slices.Backward(rs) {
		if b.last || r.from < b.key {
			return r.from, !r.to.before(b)
		}
	}
	return "", false
}
