package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

func limits(q *request) error {
	stats, err := q.Stats()
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(slices.Clone(stats.Queues), func(one pawl.QueueStats) bool { return one.Limits == (pawl.Limits{}) && one.Declared == nil })
	return q.show("limits", "limits", "Limits", queuesAfter(all, "limits", q.Form.Get("after")), q.command("limit", "list"))
}

// keysPage is one page of the keys of a queue. A key may be made of arguments, so its users need ViewPayload.
type keysPage struct {
	Queue    string
	Blocked  bool // only keys with blocked jobs
	Keys     []pawl.KeyStats
	Limits   pawl.Limits
	NextLink string
	Searched bool // the page is short, because the search takes longer
}

func keys(q *request) error {
	p := &keysPage{Queue: q.Form.Get("queue"), Blocked: q.Form.Get("blocked") != ""}
	if _, err := q.knownQueue(p.Queue); err != nil {
		return err
	}
	p.Limits = q.QueueStats(p.Queue).Limits
	ask, began := admin.KeyQuery{Queue: p.Queue, After: q.Form.Get("after")}, time.Now()
	for {
		ask.Limit = pageSize - len(p.Keys)
		page, err := q.d.admin.Keys(q.ctx, ask)
		if err != nil {
			return err
		}
		for _, k := range page.Keys {
			if !p.Blocked || k.Blocked > 0 {
				p.Keys = append(p.Keys, k)
			}
		}
		if ask.After = page.Next; ask.After == "" || len(p.Keys) >= pageSize || time.Since(began) > lookTime {
			break
		}
	}
	words := []string{"key", "list", p.Queue}
	blocked := ""
	if p.Blocked {
		blocked, words = "1", append(words, "--blocked")
	}
	if p.Searched = len(p.Keys) < pageSize && ask.After != ""; ask.After != "" {
		p.NextLink = link("keys", "queue", p.Queue, "blocked", blocked, "after", ask.After)
	}
	return q.show("keys", "limits", "Keys of queue "+p.Queue, p, q.command(words...))
}

// keyPage is what the page of a key shows.
type keyPage struct {
	pawl.KeyStats
	Queue  string
	Limits pawl.Limits
	Why    []string // what its jobs wait for
}

func key(q *request) error {
	p := &keyPage{Queue: q.Form.Get("queue")}
	name := q.Form.Get("name")
	if _, err := q.knownQueue(p.Queue); err != nil {
		return err
	}
	var err error
	if p.KeyStats, err = q.d.admin.Key(q.ctx, p.Queue, name); err != nil {
		return err
	}
	p.Limits = q.QueueStats(p.Queue).Limits
	p.Why = whyKey(p.Limits, p.KeyStats)
	return q.show("key", "limits", "Key "+name, p, q.command("key", "show", p.Queue, name))
}

// whyKey says what the jobs of a key wait for.
func whyKey(l pawl.Limits, k pawl.KeyStats) (lines []string) {
	if k.Held {
		lines = append(lines, "The first job is dead and holds the key. No other job runs until somebody retries it, deletes it, or releases the key.")
	}
	if k.Blocked == 0 {
		return lines
	}
	switch {
	case k.Held:
	case l.InOrder != pawl.OrderNone:
		lines = append(lines, "The jobs of the key run one after another, in order.")
	case l.RunningPerKey > 0 && k.Running >= l.RunningPerKey:
		lines = append(lines, fmt.Sprintf("It has %d of %d jobs running.", k.Running, l.RunningPerKey))
	}
	if !k.Rests.IsZero() {
		lines = append(lines, "A handler lets the key rest. No job of it starts until then, or until somebody releases it.")
	}
	if k.Next.After(k.Rests) {
		lines = append(lines, "Its rate lets the next job start later.")
	}
	return lines
}

// knownQueue returns a queue of that name.
func (q *request) knownQueue(name string) (string, error) {
	if q.QueueStats(name).Name == "" {
		return name, &refusal{http.StatusNotFound, "There is no queue " + clipped(name) + ".", "The page of queues lists all of them."}
	}
	return name, nil
}

// limitsText describes the limits of a queue; "" if it has none.
func limitsText(l pawl.Limits) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if l.Running > 0 {
		add("%d running", l.Running)
	}
	if l.Pool.Running > 0 {
		add("%d running in pool %s", l.Pool.Running, clipped(l.Pool.Name))
	}
	if l.RunningPerKey > 0 {
		add("%d running per key", l.RunningPerKey)
	}
	if l.Rate.Starts > 0 {
		add("%d starts per %s", l.Rate.Starts, span(l.Rate.Per))
	}
	if l.RatePerKey.Starts > 0 {
		add("%d starts per %s and key", l.RatePerKey.Starts, span(l.RatePerKey.Per))
	}
	if l.InOrder != pawl.OrderNone {
		add("keys in order: %s", l.InOrder)
	}
	if l.Fair {
		add("keys take turns")
	}
	if l.MaxWaiting > 0 {
		add("at most %d waiting", l.MaxWaiting)
	}
	if l.MaxWaitingPerKey > 0 {
		add("at most %d waiting per key", l.MaxWaitingPerKey)
	}
	return strings.Join(parts, ", ")
}
