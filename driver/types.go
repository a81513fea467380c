package driver

import (
	"reflect"
	"sync"

	"github.com/gopawl/pawl"
)

// types has the types of arguments that running workers of this process have, by their queues.
var types = struct {
	mu  sync.RWMutex
	all map[pawl.Queue][]*map[string]func(payload []byte) error
}{all: make(map[pawl.Queue][]*map[string]func([]byte) error)}

// ServeTypes notes, until end is called, how a worker of a queue decodes the arguments of each kind that
// it handles. [CheckType] then checks an operator's edit of a job against the type that will run it.
func ServeTypes(q pawl.Queue, decode map[string]func(payload []byte) error) (end func()) {
	if !reflect.ValueOf(q).Comparable() { // a wrapper that no operator's queue can be equal to
		return func() {}
	}
	own := &decode
	types.mu.Lock()
	defer types.mu.Unlock()
	types.all[q] = append(types.all[q], own)
	return func() {
		types.mu.Lock()
		defer types.mu.Unlock()
		var left []*map[string]func([]byte) error
		for _, other := range types.all[q] {
			if other != own {
				left = append(left, other)
			}
		}
		if types.all[q] = left; len(left) == 0 {
			delete(types.all, q)
		}
	}
}

// CheckType decodes a payload into the type of each running worker of a queue that handles a kind.
// Known is false if there is no such worker in this process. The error is the same as that of an
// attempt: it matches [pawl.ErrPayloadEncoding] and names the field.
func CheckType(q any, kind string, payload []byte) (known bool, err error) {
	queue, ok := q.(pawl.Queue)
	if !ok || !reflect.ValueOf(q).Comparable() {
		return false, nil
	}
	types.mu.RLock()
	all := types.all[queue]
	types.mu.RUnlock()
	for _, one := range all {
		if decode := (*one)[kind]; decode != nil {
			known = true
			if err := decode(payload); err != nil {
				return true, err
			}
		}
	}
	return known, nil
}
