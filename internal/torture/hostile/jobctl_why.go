package hostile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// obstacle is one thing that keeps a job from running, as jobctl prints it.
type obstacle struct {
	What                         string
	Queue, Kind, Key, Need, Pool *string
	Until                        *string `json:"until_at"`
	Running, Limit               int
	Holders                      []string
}

// partOfWhy reports whether text says of a job what one of the sound lines says. Obstacles, and jobs that run, may be
// missing, since their rows may be. When a rate lets a job start depends on the clock.
func partOfWhy(text string, sound map[string]bool) bool {
	type why struct{ Obstacles []obstacle }
	of, _, found := strings.Cut(text, `"obstacles":`)
	var is why
	if !found || json.Unmarshal([]byte(text), &is) != nil {
		return false
	}
	for line := range sound {
		var was why
		if !strings.HasPrefix(line, of+`"obstacles":`) || json.Unmarshal([]byte(line), &was) != nil {
			continue
		}
		missing := func(o obstacle) bool { return !slices.ContainsFunc(was.Obstacles, o.partOf) }
		if !slices.ContainsFunc(is.Obstacles, missing) {
			return true
		}
	}
	return false
}

// partOf reports whether the obstacle is another one, of which jobs that run may be missing.
func (o obstacle) partOf(other obstacle) bool {
	if o.What == "queue_rate" || o.What == "key_rate" {
		o.Until = other.Until
	}
	lost := func(holder string) bool { return !slices.Contains(other.Holders, holder) }
	if o.Running <= other.Running && !slices.ContainsFunc(o.Holders, lost) {
		o.Running, o.Holders = other.Running, other.Holders
	}
	return reflect.DeepEqual(o, other)
}
