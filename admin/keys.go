package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Explainer is a [Store] that knows everything that keeps a job from running, and the keys of its
// queues. For another store, [Admin.Why] knows only the state of the job and the pause of its queue.
type Explainer interface {
	// Why returns what keeps a job from running now, or [pawl.ErrNotFound].
	Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error)

	// Key reads one key of a queue. It returns [pawl.ErrNotFound] if the queue has no limits per key,
	// or does not know the key.
	Key(ctx context.Context, queue, key string) (pawl.KeyStats, error)

	// Keys reads up to max keys of a queue with limits per key, after a key: "" for the first. Short
	// keys come first.
	Keys(ctx context.Context, queue, after string, max int) ([]pawl.KeyStats, error)
}

// obstacles says why a job does not run.
type obstacles struct{ Obstacles []pawl.Obstacle }

// mostObstacles is more than a job can have.
const mostObstacles = 20

var opWhy = define(operation[jobRequest, obstacles]{
	path: "jobs/why", work: lists,
	do: func(ctx context.Context, a Admin, r *jobRequest) (obstacles, error) {
		all, err := a.Why(ctx, r.ID)
		return obstacles{all}, err
	},
	check: func(_ *jobRequest, o *obstacles) error {
		if slices.ContainsFunc(o.Obstacles, func(o pawl.Obstacle) bool { return len(o.Holders) > pawl.MaxHolders }) {
			return errors.New("it names too many jobs")
		}
		return checkPage(len(o.Obstacles), mostObstacles, "", "")
	},
})

func (c *client) Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	o, err := ask(ctx, c, opWhy, jobRequest{id})
	return o.Obstacles, err
}

func (d direct) Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	all, err := d.why(ctx, id)
	if err != nil || d.live {
		return all, err
	}
	// The process that leased a job of a stopped app has ended.
	all = slices.DeleteFunc(all, func(o pawl.Obstacle) bool { return o.What == pawl.IsRunning })
	ended := func(o pawl.Obstacle) bool { return o.What == pawl.IsDead || o.What == pawl.IsCompleted }
	if !slices.ContainsFunc(all, ended) {
		all = append(all, pawl.Obstacle{What: pawl.ByStop})
	}
	return all, nil
}

func (d direct) why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	if q, ok := d.q.(Explainer); ok {
		return q.Why(ctx, id)
	}
	e, err := d.q.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	stats, err := d.q.Stats(ctx)
	if err != nil {
		return nil, err
	}
	f := driver.Facts{Job: e}
	for _, q := range stats.Queues {
		if q.Name == e.Queue {
			f.Queue = q
		}
	}
	return f.Obstacles(), nil
}

// dependents are the jobs that wait for a job.
type dependents struct{ Jobs []pawl.ID }

var opDependents = define(operation[jobRequest, dependents]{
	path: "jobs/dependents", work: lists, large: always[jobRequest],
	do: func(ctx context.Context, a Admin, r *jobRequest) (dependents, error) {
		all, err := a.Dependents(ctx, r.ID)
		return dependents{all}, err
	},
	check: func(_ *jobRequest, d *dependents) error { return checkPage(len(d.Jobs), pawl.MaxBatchJobs, "", "") },
})

func (c *client) Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error) {
	d, err := ask(ctx, c, opDependents, jobRequest{id})
	return d.Jobs, err
}

func (d direct) Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error) {
	type dependents interface {
		Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error)
	}
	return using(d, "jobs that wait for others", func(store dependents) ([]pawl.ID, error) { return store.Dependents(ctx, id) })
}

// KeyQuery is one page of a list of keys.
type KeyQuery struct {
	Queue string
	After string // a key; "" for the first page
	Limit int    // the most keys of a page; 0 means [DefaultLimit], and [MaxLimit] is the maximum
}

// KeyList is a part of a list of keys. Short keys come first.
type KeyList struct {
	Keys []pawl.KeyStats
	Next string // where the next page begins, "" after the last
}

var opKeys = define(operation[KeyQuery, KeyList]{
	path: "keys/list", work: lists, large: func(q *KeyQuery) bool { return q.Limit > DefaultLimit },
	do: func(ctx context.Context, a Admin, q *KeyQuery) (KeyList, error) { return a.Keys(ctx, *q) },
	check: func(q *KeyQuery, l *KeyList) error {
		return checkList(len(l.Keys), q.Limit, q.After, l.Next)
	},
})

func (c *client) Keys(ctx context.Context, q KeyQuery) (KeyList, error) {
	return ask(ctx, c, opKeys, q)
}

func (d direct) Keys(ctx context.Context, q KeyQuery) (l KeyList, err error) {
	limit, err := pageSize(q.Limit)
	if err != nil {
		return l, err
	}
	if err := driver.CheckQueue(q.Queue); err != nil {
		return l, err
	}
	store, err := optional[Explainer](d.q, "keys")
	if err != nil {
		return l, err
	}
	if l.Keys, err = store.Keys(ctx, q.Queue, q.After, limit); err == nil && len(l.Keys) == limit {
		l.Next = l.Keys[limit-1].Key
	}
	return l, err
}

type keyRequest struct{ Queue, Key string }

var opKey = define(operation[keyRequest, pawl.KeyStats]{
	path: "keys/show", work: lists,
	do: func(ctx context.Context, a Admin, r *keyRequest) (pawl.KeyStats, error) {
		return a.Key(ctx, r.Queue, r.Key)
	},
	check: func(r *keyRequest, k *pawl.KeyStats) error {
		if k.Key != r.Key || max(len(k.Holders), len(k.Waiting)) > pawl.MaxHolders {
			return errors.New("it has another key, or names too many jobs")
		}
		return nil
	},
})

func (c *client) Key(ctx context.Context, queue, key string) (pawl.KeyStats, error) {
	return ask(ctx, c, opKey, keyRequest{queue, key})
}

func (d direct) Key(ctx context.Context, queue, key string) (pawl.KeyStats, error) {
	return using(d, "keys", func(store Explainer) (pawl.KeyStats, error) { return store.Key(ctx, queue, key) })
}

// Rester is a [Store] whose keys can rest, see [pawl.Throttle].
type Rester interface {
	// EndRest ends the rest of a key. It does nothing if the key does not rest.
	EndRest(ctx context.Context, queue, key string) error
}

var opEndRest = defineChange("keys/end-rest", func(ctx context.Context, a Admin, r *keyRequest) error {
	return a.EndRest(ctx, r.Queue, r.Key)
})

func (c *client) EndRest(ctx context.Context, queue, key string) error {
	return send(ctx, c, opEndRest, keyRequest{queue, key})
}

func (d direct) EndRest(ctx context.Context, queue, key string) error {
	return usingTo(d, "rests", func(store Rester) error { return store.EndRest(ctx, queue, key) })
}

// ObstacleView is an obstacle in JSON.
type ObstacleView struct {
	What    string    `json:"what"`
	Text    Text      `json:"text"`
	Queue   Text      `json:"queue"`
	Kind    Text      `json:"kind"`
	Key     *Text     `json:"key"`
	Need    *Text     `json:"need"`
	Pool    *Text     `json:"pool"`
	Until   Stamp     `json:"until_at"`
	Running int       `json:"running"`
	Limit   int       `json:"limit"`
	Holders []pawl.ID `json:"holders"`
}

// KeyView is a key in JSON.
type KeyView struct {
	Queue   Text      `json:"queue"`
	Key     Text      `json:"key"`
	Running int       `json:"running"`
	Ready   int       `json:"ready"`
	Blocked int       `json:"blocked"`
	Backlog int       `json:"backlog"`
	Next    Stamp     `json:"next_at"`
	Rests   Stamp     `json:"rests_until_at"`
	Held    bool      `json:"held"`
	Holders []pawl.ID `json:"holders"`
	Waiting []pawl.ID `json:"waiting"`
	Head    *pawl.ID  `json:"head"`
}

// ObstacleOf returns an obstacle in JSON.
func ObstacleOf(o pawl.Obstacle) ObstacleView {
	return ObstacleView{
		What: string(o.What), Text: Text(o.String()), Queue: Text(o.Queue), Kind: Text(o.Kind),
		Key: textOrNull(o.Key), Need: textOrNull(o.Need), Pool: textOrNull(o.Pool),
		Until: Stamp{o.Until}, Running: o.Running, Limit: o.Limit, Holders: append([]pawl.ID{}, o.Holders...),
	}
}

// KeyOf returns a key in JSON.
func KeyOf(queue string, k pawl.KeyStats) KeyView {
	v := KeyView{
		Queue: Text(queue), Key: Text(k.Key), Running: k.Running, Ready: k.Ready, Blocked: k.Blocked, Backlog: k.Backlog,
		Next: Stamp{k.Next}, Rests: Stamp{k.Rests}, Held: k.Held, Holders: append([]pawl.ID{}, k.Holders...), Waiting: append([]pawl.ID{}, k.Waiting...),
	}
	if !k.Head.IsZero() {
		v.Head = &k.Head
	}
	return v
}
