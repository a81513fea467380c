package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// limits are the values of --fail-if.
type limits []limit

// limit is one value of --fail-if: dead>0, queue:email.oldest>5m,
// pool:gpu.leased>=4.
type limit struct {
	text      string
	queue     string // "" for all queues
	pool      string // only the queues of this pool count; "" for all queues
	what      string // a state, oldest, held, or blocked
	inclusive bool   // >= and not >
	count     int
	age       time.Duration
}

var limitPattern = regexp.MustCompile(`^(?:(queue|pool):(.+)\.)?(ready|delayed|leased|dead|completed|oldest|held|blocked)(>=?)(.+)$`)

// Set adds the limits of one --fail-if.
func (ls *limits) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		m := limitPattern.FindStringSubmatch(one)
		if m == nil {
			return fmt.Errorf("%q is not a limit such as dead>0, oldest>5m, queue:email.ready>=1000, or pool:gpu.leased>=4", one)
		}
		if m[1] != "" && m[3] == "blocked" {
			return fmt.Errorf("%q: blocked counts runs in all queues, not in %s %s", one, m[1], m[2])
		}
		l := limit{text: one, what: m[3], inclusive: m[4] == ">="}
		if m[1] == "pool" {
			l.pool = m[2]
		} else {
			l.queue = m[2]
		}
		var err error
		if l.what == "oldest" {
			l.age, err = parseAge(m[5])
		} else {
			l.count, err = parseCount(m[5])
		}
		if err != nil {
			return fmt.Errorf("%q in %q: %w", m[5], one, err)
		}
		*ls = append(*ls, l)
	}
	return nil
}

// check returns an error with the limits that are exceeded.
func (ls limits) check(s *admin.Stats, runs workflow.Counts, now time.Time) error {
	for _, l := range ls {
		var err error // a misspelled name would never exceed its limit
		switch {
		case l.queue != "":
			_, err = findQueue(s, l.queue)
		case l.pool != "":
			_, err = findPool(s, l.pool)
		}
		if err != nil {
			return err
		}
	}
	var passed []string
	for _, l := range ls {
		if value, over := l.passed(s, runs, now); over {
			passed = append(passed, fmt.Sprintf("%s: it is %s", l.text, value))
		}
	}
	if passed == nil {
		return nil
	}
	return &failure{exitDamaged, fmt.Sprintf("%d of %s exceeded:", len(passed), plural(len(ls), "limit")), strings.Join(passed, "\n")}
}

// passed compares a limit with the current value.
func (l *limit) passed(s *admin.Stats, runs workflow.Counts, now time.Time) (value string, over bool) {
	count, oldest := 0, time.Duration(-1)
	for _, q := range s.Queues {
		if l.what == "blocked" || l.queue != "" && l.queue != q.Name || l.pool != "" && l.pool != q.Limits.Pool.Name {
			continue
		}
		switch {
		case l.what == "held":
			count += q.Held
		case l.what != "oldest":
			count += *driver.CountOf(&q.Counts, pawl.State(l.what))
		case !q.Oldest.IsZero():
			oldest = max(oldest, now.Sub(q.Oldest), 0)
		}
	}
	switch l.what {
	case "blocked":
		count = runs.Blocked
	case "oldest":
		return plain.Span(oldest), oldest > l.age || l.inclusive && oldest == l.age
	}
	return strconv.Itoa(count), count > l.count || l.inclusive && count == l.count
}
