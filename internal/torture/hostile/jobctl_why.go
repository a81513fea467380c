package hostile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// obstacle is one thing that keeps a job from running, as jobctl prints it.
type obstacle struct {
	What                         pawl.ObstacleKind
	Text                         string
	Queue, Kind, Key, Need, Pool *string
	Until                        *string `json:"until_at"`
	Running, Limit               int
	Holders                      []string
}

// lasting are the obstacles that cannot be lost without a trace. They come from the rows of a job and of its queue,
// without which jobctl reports damage, or say that no process has the file open. The rows of other obstacles may be
// lost unnoticed.
var lasting = []pawl.ObstacleKind{
	pawl.IsRunning, pawl.IsDead, pawl.IsCompleted, pawl.ByDelay, pawl.ByPause, pawl.ByQueueRest, pawl.ByStop,
}

// partOfWhy reports whether text says the same about a job as one of the sound lines, in the same order. Obstacles
// that are not lasting, and running jobs, may be missing, since their rows may be missing. The time when a rate lets
// a job start depends on the clock.
func partOfWhy(text string, sound map[string]bool) bool {
	type why struct{ Obstacles []obstacle }
	of, _, found := strings.Cut(text, `"obstacles":`)
	var is why
	if !found || json.Unmarshal([]byte(text), &is) != nil || is.Obstacles == nil {
		return false
	}
	for line := range sound {
		var was why
		if strings.HasPrefix(line, of+`"obstacles":`) && json.Unmarshal([]byte(line), &was) == nil && partOfAll(is.Obstacles, was.Obstacles) {
			return true
		}
	}
	return false
}

// partOfAll reports whether obstacles are equal to others, in order. Some of the others may be missing.
func partOfAll(are, were []obstacle) bool {
	for _, was := range were {
		switch {
		case len(are) > 0 && are[0].partOf(was):
			are = are[1:]
		case slices.Contains(lasting, was.What):
			return false
		}
	}
	return len(are) == 0
}

// partOf reports whether the obstacle equals another one, except that running jobs may be missing. Its text must
// match its other fields.
func (o obstacle) partOf(other obstacle) bool {
	text := other.Text
	if o.What == pawl.ByQueueRate || o.What == pawl.ByKeyRate {
		text, o.Until = o.text(), other.Until
	}
	lost := func(holder string) bool { return !slices.Contains(other.Holders, holder) }
	if o.Running <= other.Running && !slices.ContainsFunc(o.Holders, lost) {
		if o.Running != other.Running || len(o.Holders) != len(other.Holders) {
			text = o.text()
		}
		o.Running, o.Holders = other.Running, other.Holders
	}
	other.Text = text
	return reflect.DeepEqual(o, other)
}

// text returns how package pawl describes the obstacle, or "" if it cannot describe a field.
func (o obstacle) text() string {
	all := pawl.Obstacle{What: o.What, Running: o.Running, Limit: o.Limit}
	for from, to := range map[*string]*string{o.Queue: &all.Queue, o.Kind: &all.Kind, o.Key: &all.Key, o.Need: &all.Need, o.Pool: &all.Pool} {
		if from != nil {
			*to = *from
		}
	}
	if o.Until != nil {
		until, err := time.Parse(time.RFC3339Nano, *o.Until)
		if err != nil {
			return ""
		}
		all.Until = until
	}
	for _, holder := range o.Holders {
		id, err := pawl.ParseID(holder)
		if err != nil {
			return ""
		}
		all.Holders = append(all.Holders, id)
	}
	return all.String()
}

// partOfGroup reports whether text is a group of a summary that also occurs in one of the sound
// lines. The sound group must have at least as many jobs, and its times must include those of text.
func partOfGroup(text string, sound map[string]bool) bool {
	type group struct {
		Key     *string   `json:"key"`
		Count   int64     `json:"count"`
		FirstAt time.Time `json:"first_died_at"`
		LastAt  time.Time `json:"last_died_at"`
	}
	read := func(text string) (g group, ok bool) {
		err := json.Unmarshal([]byte(text), &g)
		return g, err == nil && g.Key != nil && g.Count > 0
	}
	part, ok := read(text)
	if !ok {
		return false
	}
	for line := range sound {
		if all, ok := read(line); ok && *all.Key == *part.Key && part.Count <= all.Count &&
			!part.FirstAt.Before(all.FirstAt) && !part.LastAt.After(all.LastAt) {
			return true
		}
	}
	return false
}
