package redis

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// Jobs iterates over the jobs that match f, with state, payload, and history, in the order that f asks for. It
// reads them in pages, and blocks other callers for at most a page. A job that moves during the iteration may
// appear in its old state or in its new one, or not at all. An error with a nil envelope ends the iteration.
func (q *Queue) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return core.Jobs(ctx, f, func() core.Pager { return &page{q: q, filter: f, parts: driver.AllParts} })
}

// ListParts reads at most max jobs that match f, in the order of [Queue.Jobs], and only the given
// parts of each. Max is 1 to [pawl.MaxListed]. After is a cursor: "" for the beginning, or the Next of
// an earlier call with the same filter. A cursor stays valid after its job is gone.
//
// ListParts looks at about 16,000 jobs at most, and stops at 8 MiB of payloads, histories, and
// headers. So it may return fewer than max jobs, even none, before the end. At the end Next is "".
//
// It returns [pawl.ErrInvalid] for an unknown state or order, a max out of range, and a cursor of
// another list.
func (q *Queue) ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error) {
	return core.List(ctx, f, after, max, &page{q: q, filter: f, parts: parts})
}

// page is a step of a list.
type page struct {
	core.Page
	q      *Queue
	filter pawl.Filter
	parts  driver.Parts
	queue  string // queue of the last member, in a list that is ordered by queue
	last   string // the member that was read last, "" at the beginning
}

// indexes are the sorted sets of a list, which go one group after another. The members of a group are
// merged.
type indexes struct {
	queue string
	keys  []string
}

// Place implements [core.Pager].
func (p *page) Place() []byte { return []byte(p.queue + "\x00" + p.last) }

// Resume implements [core.Pager].
func (p *page) Resume(place []byte) (ok bool) {
	p.queue, p.last, ok = strings.Cut(string(place), "\x00")
	return ok
}

// Read reads some jobs after p.last, at most room.
func (p *page) Read(ctx context.Context, room int) error {
	if p.last == "" {
		if err := p.q.look(ctx); err != nil {
			return err
		}
	}
	groups, err := p.groups(ctx)
	if err != nil {
		return err
	}
	var members []string
	for i, g := range groups {
		if members, err = p.members(ctx, g, min(room, core.ListPage)); err != nil {
			return err
		}
		if len(members) > 0 {
			p.queue = g.queue
			break
		}
		p.queue, p.last = g.queue, ""
		p.End = i == len(groups)-1
	}
	p.End = p.End || len(groups) == 0
	p.Rows, p.Bytes, p.Jobs = len(members), 0, nil
	ids := make([]string, len(members))
	for i, member := range members {
		ids[i] = member[max(len(member)-len(pawl.ID{}), 0):]
	}
	return p.fill(ctx, members, ids)
}

// fill reads the jobs of members, until they reach the limit of bytes.
func (p *page) fill(ctx context.Context, members, ids []string) error {
	for len(ids) > 0 && p.Bytes < core.ListBytes {
		n := min(len(ids), 20)
		jobs, _, err := p.q.read(ctx, ids[:n], p.parts)
		if err != nil {
			return err
		}
		for _, listed := range jobs {
			if listed.Err == nil {
				p.Bytes += driver.JobSize(listed.Job)
				if !p.filter.Matches(listed.Job) {
					continue
				}
			}
			p.Jobs = append(p.Jobs, listed)
		}
		p.last, members, ids = members[n-1], members[n:], ids[n:]
		p.End = false
	}
	return nil
}

// groups returns the indexes of the list, beginning with p.queue.
func (p *page) groups(ctx context.Context) (groups []indexes, err error) {
	f, key := p.filter, func(name string) string { return p.q.prefix + name }
	switch {
	case f.Order == pawl.OrderCreated || f.State == "":
		return []indexes{{"", []string{key("i")}}}, nil
	case f.State != pawl.Ready && f.State != pawl.Dead:
		return []indexes{{"", []string{key(codeOf(f.State))}}}, nil
	}
	queues, err := p.q.rdb.LRange(ctx, key("q"), 0, -1).Result()
	if err != nil {
		return nil, explain(err)
	}
	if f.Newest {
		slices.Reverse(queues)
	}
	if at := slices.Index(queues, p.queue); at >= 0 && f.Order != pawl.OrderDied {
		queues = queues[at:]
	}
	for _, queue := range queues {
		if f.Queue != "" && f.Queue != queue {
			continue
		}
		g := indexes{queue, []string{key("f:" + queue)}}
		if f.State == pawl.Ready {
			if g.keys, err = p.lanes(ctx, queue); err != nil {
				return nil, err
			}
		}
		if f.Order == pawl.OrderDied && len(groups) > 0 {
			groups[0].keys = append(groups[0].keys, g.keys...)
			continue
		}
		if f.Order == pawl.OrderDied {
			g.queue = ""
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// lanes returns the indexes of the ready jobs of a queue.
func (p *page) lanes(ctx context.Context, queue string) (keys []string, err error) {
	fields, err := p.q.rdb.HKeys(ctx, p.q.prefix+"n:"+queue).Result()
	for _, field := range fields {
		if code, kind := field[:1], field[1:]; code < "a" && (p.filter.Kind == "" || p.filter.Kind == kind) {
			keys = append(keys, p.q.prefix+"r:"+queue+"\x00"+kind+"\x00"+code)
		}
	}
	return keys, explain(err)
}

// members reads the first members of a group after p.last.
func (p *page) members(ctx context.Context, g indexes, limit int) (members []string, err error) {
	from, to := "-", "+"
	if p.filter.Newest {
		from, to = to, from
	}
	if p.last != "" && g.queue == p.queue {
		from = "(" + p.last
	}
	pipe := p.q.rdb.Pipeline()
	var found []*redis.StringSliceCmd
	for _, key := range g.keys {
		found = append(found, pipe.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, Start: from, Stop: to, ByLex: true, Rev: p.filter.Newest, Count: int64(limit)}))
	}
	if len(found) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, explain(err)
	}
	for _, f := range found {
		members = append(members, f.Val()...)
	}
	slices.Sort(members)
	if p.filter.Newest {
		slices.Reverse(members)
	}
	return members[:min(len(members), limit)], nil
}

// FindIDs returns up to most IDs of jobs that begin or end with part, which is at least four
// hexadecimal digits, with or without dashes. It returns [pawl.ErrInvalid] for any other part. To find
// the end of an ID, it compares at most [driver.MaxSearched] IDs, after a cursor: "" for the beginning, or the next
// of an earlier call. Next is "" at the end, and when most IDs were found.
func (q *Queue) FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error) {
	search, err := driver.NewSearch(part, after, most)
	if err != nil {
		return nil, "", err
	}
	if err := q.look(ctx); err != nil {
		return nil, "", err
	}
	read := func(from, to string, count int) ([]string, error) {
		return q.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: q.prefix + "i", Start: from, Stop: to, ByLex: true, Count: int64(count)}).Result()
	}
	if least, greatest, room := search.Range(); room > 0 {
		found, err := read("["+string(least[:]), "["+string(greatest[:]), room)
		if err != nil {
			return nil, "", fmt.Errorf("find IDs: %w", explain(err))
		}
		for _, id := range found {
			search.IDs = append(search.IDs, idOf(id))
		}
	}
	for search.Left() > 0 {
		found, err := read("("+string(search.After[:]), "+", min(search.Left(), 1000))
		if err != nil {
			return nil, "", fmt.Errorf("find IDs: %w", explain(err))
		}
		for _, id := range found {
			if !search.Add(idOf(id)) {
				break
			}
		}
		if len(found) == 0 {
			break
		}
	}
	return search.IDs, search.Next(), nil
}

// scopeEffects is the scope of a list of effects.
const scopeEffects = "effects"

// Effects reads at most max idempotency keys that count as done, ordered by the times when they expire. Max is 1 to
// [pawl.MaxListed]. After is a cursor: "" for the beginning, or next of an earlier call. It returns [pawl.ErrInvalid]
// for a cursor of another list, and for a max out of range.
func (q *Queue) Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error) {
	if err := driver.CheckListed(max); err != nil {
		return nil, "", err
	}
	from := "-"
	if after != "" {
		place, err := driver.ParseCursor(after, scopeEffects)
		if err != nil {
			return nil, "", err
		}
		from = "(" + string(place)
	}
	if err := q.look(ctx); err != nil {
		return nil, "", err
	}
	members, err := q.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: q.prefix + "t", Start: from, Stop: "+", ByLex: true, Count: int64(max)}).Result()
	if err != nil {
		return nil, "", fmt.Errorf("list effects: %w", explain(err))
	}
	for _, member := range members {
		kind, key, ok := strings.Cut(member[min(len(member), 22):], "\x00")
		if !ok {
			return effects, "", fmt.Errorf("list effects: %w: %q has no kind", pawl.ErrCorrupt, member)
		}
		effects = append(effects, driver.Effect{Kind: kind, Key: key, Until: timeOf(member[:21])})
	}
	if len(members) == max {
		next = driver.FormatCursor([]byte(members[max-1]), scopeEffects)
	}
	return effects, next, nil
}
