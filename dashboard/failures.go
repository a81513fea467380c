package dashboard

import (
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/dlq"
)

// groupsPage is what the page of failures shows.
type groupsPage struct {
	Groups   []admin.Group
	Looked   int64 // dead jobs in these groups
	Damaged  int64
	Dead     int // in all queues, as the queue counts them
	NextLink string
	Partly   bool // not all dead jobs were read
	Queue    string
}

// failures groups dead jobs by the common form of their last errors. It reads for a limited time.
func failures(q *request) error {
	p := &groupsPage{Queue: q.Form.Get("queue")}
	ask := admin.SummaryQuery{By: "error", After: q.Form.Get("after")}
	ask.Queue = p.Queue
	groups, began := make(admin.Grouping), time.Now()
	for {
		page, err := q.d.admin.Summary(q.ctx, ask)
		if err != nil {
			return err
		}
		p.Damaged += page.Damaged
		for _, g := range page.Groups {
			p.Looked += g.Count
			groups.Add(g)
		}
		if ask.After = page.Next; ask.After == "" || time.Since(began) > lookTime {
			break
		}
	}
	p.Groups = groups.Sorted()
	p.Groups = p.Groups[:min(len(p.Groups), 2*pageSize)]
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	for _, one := range stats.Queues {
		if p.Queue == "" || one.Name == p.Queue {
			p.Dead += one.Dead
		}
	}
	if p.Partly = ask.After != "" || q.Form.Get("after") != ""; ask.After != "" {
		p.NextLink = link("failures", "queue", p.Queue, "after", ask.After)
	}
	words := []string{"dead", "summary"}
	if p.Queue != "" {
		words = append(words, "-q", p.Queue)
	}
	return q.show("failures", "failures", "Failures", p, q.command(words...))
}

// overviewPage is what the first page shows.
type overviewPage struct {
	Queues  []pawl.QueueStats
	Total   pawl.Counts
	Oldest  time.Time // when the ready job that waits longest became ready
	Chart   *chart    // of the last hour; nil if the engine keeps no throughput
	Rates   []rate    // rates of the last minutes of the chart
	Groups  []admin.Group
	Partly  bool // not all dead jobs were read
	Process *admin.Process
	Paused  int
}

func overview(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	p := &overviewPage{Queues: stats.Queues, Process: stats.Process}
	if p.Chart, err = q.chartOf(admin.ThroughputQuery{}); err != nil {
		return err
	}
	if p.Chart != nil {
		p.Rates = p.Chart.rates(q.Now())
	}
	for _, one := range stats.Queues {
		add(&p.Total, one.Counts)
		if one.Paused {
			p.Paused++
		}
		if p.Oldest.IsZero() || !one.Oldest.IsZero() && one.Oldest.Before(p.Oldest) {
			p.Oldest = one.Oldest
		}
	}
	p.Queues = p.Queues[:min(len(p.Queues), pageSize)]
	if p.Total.Dead > 0 {
		if p.Groups, p.Partly, err = q.newestFailures(); err != nil {
			return err
		}
	}
	return q.show("overview", "overview", "Overview", p, q.command("stats"))
}

// newestFailures groups the newest dead jobs. A live page reads itself again each second, so it must not read
// all of them.
func (q *request) newestFailures() (groups []admin.Group, partly bool, err error) {
	ask := admin.Query{Limit: newestDead}
	ask.State, ask.Order, ask.Newest = pawl.Dead, pawl.OrderDied, true
	page, err := q.d.admin.List(q.ctx, ask)
	if err != nil {
		return nil, false, err
	}
	all := make(admin.Grouping)
	for _, one := range page.Jobs {
		if e := one.Job; one.Err == nil && e.Death != nil {
			all.Add(admin.Group{Key: dlq.Fingerprint(e.LastError()), Count: 1, First: e.Death.At, Last: e.Death.At, Example: e.ID})
		}
	}
	groups = all.Sorted()
	return groups[:min(len(groups), 5)], page.Next != "", nil
}

// newestDead is how many dead jobs the overview groups.
const newestDead = 250

func add(to *pawl.Counts, c pawl.Counts) {
	to.Ready += c.Ready
	to.Delayed += c.Delayed
	to.Leased += c.Leased
	to.Dead += c.Dead
	to.Completed += c.Completed
	to.Blocked += c.Blocked
}

// queuesPage is one page of a list of queues.
type queuesPage struct {
	Queues   []pawl.QueueStats
	NextLink string
}

func queues(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	return q.show("queues", "queues", "Queues", queuesAfter(stats.Queues, "queues", q.Form.Get("after")), q.command("queue", "list"))
}

// queuesAfter returns one page of a list of queues, with the link to the next.
func queuesAfter(all []pawl.QueueStats, page, after string) (p queuesPage) {
	if i := slices.IndexFunc(all, func(one pawl.QueueStats) bool { return one.Name == after }); i >= 0 {
		all = all[i+1:]
	}
	p.Queues = all[:min(len(all), 2*pageSize)]
	if n := len(p.Queues); n < len(all) {
		p.NextLink = link(page, "after", p.Queues[n-1].Name)
	}
	return p
}

// workersPage is what runs now.
type workersPage struct {
	Process *admin.Process
	Queues  []pawl.QueueStats
	found
	NextLink string
}

func workers(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	s := &selection{}
	s.State = pawl.Leased
	p := &workersPage{Process: stats.Process, Queues: stats.Queues[:min(len(stats.Queues), 2*pageSize)]}
	if p.found, err = q.find(s, admin.Summary, q.Form.Get("after"), pageSize, lookTime); err != nil {
		return err
	}
	if p.Next != "" {
		p.NextLink = link("workers", "after", p.Next)
	}
	return q.show("workers", "workers", "Workers", p, q.command("job", "list", "-s", "leased"))
}
