package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Each runs fn for every item in its own branch, at most limit of them at a time. The results
// are in the order of the items. Errors are as in [All].
//
// The key of an item is its identity. The branch is named name/key, and uses its part of the
// journal wherever the item is in the list. A key is a text that is unique in the list and
// never changes, such as an ID or a path. Use [strconv.Itoa] for numbers. An empty key or a
// duplicate key returns [pawl.ErrInvalid] before anything begins.
//
// If the list is different when the run continues, new items run, even if the run has passed
// the call. The order of the items may change. An item that has begun must stay, or the run is
// blocked. So if the list depends on the outside world, compute it in a step.
func Each[Item, T any](r *Run, name string, items []Item, key func(Item) string, limit int, fn func(*Run, Item) (T, error)) ([]T, error) {
	names, err := itemNames(name, items, key)
	if err != nil {
		return nil, err
	}
	l, err := r.s.list(name, names)
	if err != nil {
		return nil, err
	}
	branches := make([]*Branch[T], len(items))
	begin := func(i int) {
		b := &Branch[T]{}
		b.branch = l.fork(names[i], func(branch *Run) (err error) {
			b.out, err = fn(branch, items[i])
			return err
		})
		branches[i] = b
	}
	// Started items continue, whatever the limit is now, before anything new.
	for i, name := range names {
		if l.known[name] != nil {
			begin(i)
		}
	}
	limit = min(max(limit, 1), MaxBranches)
	for i := range items {
		if branches[i] != nil {
			continue
		}
		err := r.s.join(func() bool {
			open := 0
			for _, b := range branches {
				if b != nil && !b.finished {
					open++
				}
			}
			return open < limit
		})
		if err != nil {
			return nil, err
		}
		begin(i)
	}
	return All(r, branches...)
}

// itemNames returns the names of the branches of items.
func itemNames[Item any](list string, items []Item, key func(Item) string) ([]string, error) {
	bad := func(format string, args ...any) ([]string, error) {
		return nil, fmt.Errorf("each %q: %w", list, &pawl.InvalidError{Field: "key", Reason: fmt.Sprintf(format, args...)})
	}
	if key == nil {
		return bad("the function is nil; give one that names an item")
	}
	names := make([]string, len(items))
	at := make(map[string]int, len(items))
	for i, item := range items {
		k := key(item)
		if k == "" {
			return bad("that of item %d is empty", i)
		}
		names[i] = itemName(k)
		if first, twice := at[names[i]]; twice {
			return bad("items %d and %d both have %q; give each a key of its own", first, i, ellipsis.Truncate(k, MaxName))
		}
		at[names[i]] = i
	}
	return names, nil
}

// itemName converts a key to a branch name. It escapes the separators of names, and a key that
// is too long ends in a hash of the whole key.
func itemName(key string) string {
	name := itemEscape.Replace(key)
	if len(name) <= MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	hash := "~" + hex.EncodeToString(sum[:8])
	return strings.ToValidUTF8(name[:MaxName-len(hash)], "") + hash
}

var itemEscape = strings.NewReplacer("%", "%25", "/", "%2F", "#", "%23", "\x00", "%00")

// list is a call of Each: branches that are identified by name, in any order.
type list struct {
	by    *scope
	name  string            // prefix of the names of the branches
	known map[string]*entry // branches in the journal
	at    int               // number of branches that began
	again bool              // an earlier call had the same name
}

// list begins the call of an Each. It requires that every item that has begun is among the
// current items.
func (s *scope) list(name string, items []string) (*list, error) {
	c, err := s.begin(KindEach, name, nil)
	if err != nil {
		return nil, err
	}
	defer c.end()
	x := s.x
	if !c.known && c.e.seq != 0 {
		c.e.State = EntryBegun
		x.later(c.e)
	}
	l := &list{by: s, name: stepName(s.name, name, c.e.Occurrence), known: make(map[string]*entry), again: c.e.Occurrence > 1}
	x.mu.Lock()
	defer x.mu.Unlock()
	begun := x.journal[l.name]
	delete(x.journal, l.name)
	delete(x.behind, l.name) // the list has no scope of its own; the scopes of its items catch up
	x.wakeCaughtUp()
	there := make(map[string]bool, len(items))
	for _, name := range items {
		there[name] = true
	}
	for _, e := range begun {
		if !there[e.Name] {
			return nil, x.stopLocked(x.complete(&DeterminismError{Want: e.String(), Got: fmt.Sprintf("%s without that item", c.e),
				Seq: e.seq, Wrote: e.Build, Reason: "keep the items that have begun, and their keys"}))
		}
		l.known[e.Name] = e
	}
	l.at = len(begun)
	return l, nil
}

// fork begins the branch of an item.
func (l *list) fork(name string, fn func(*Run) error) *branch {
	s, x := l.by, l.by.x
	b := s.newBranch(stepName(l.name, name, 1))
	b.again = l.again
	e := l.known[name]
	if e == nil {
		if err := s.awaitTurn(KindBranch); err != nil {
			b.err = err
			return b
		}
		x.mu.Lock()
		e = &entry{Scope: l.name, At: l.at, Name: name, Occurrence: 1, Kind: KindBranch}
		if b.err = s.mayCall(); b.err == nil && !s.mute() {
			if b.err = s.mayAdd(e); b.err == nil {
				l.at++
			}
		}
		x.mu.Unlock()
		if b.err == errFrontier {
			_, b.err = s.idle(waitCondition{paused: true}, nil)
		}
		if b.err != nil {
			return b
		}
		x.enter(e)
	}
	b.start(e, fn)
	return b
}
