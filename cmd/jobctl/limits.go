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

// limit is one of them: dead>0, queue:email.oldest>5m.
type limit struct {
	text      string
	queue     string // "" for all queues
	what      string // a state, oldest, held, or blocked
	inclusive bool   // >= and not >
	count     int
	age       time.Duration
}

var limitPattern = regexp.MustCompile(`^(?:queue:(.+)\.)?(ready|delayed|leased|dead|completed|oldest|held|blocked)(>=?)(.+)$`)

// Set implements pflag.Value.
func (ls *limits) Set(text string) error {
	for _, one := range strings.Split(text, ",") {
		one = strings.TrimSpace(one)
		m := limitPattern.FindStringSubmatch(one)
		if m == nil {
			return fmt.Errorf("%q is not a limit such as dead>0, oldest>5m or queue:email.ready>=1000", one)
		}
		if m[1] != "" && m[2] == "blocked" {
			return fmt.Errorf("%q: blocked counts runs in all queues, not in queue %s", one, m[1])
		}
		l := limit{text: one, queue: m[1], what: m[2], inclusive: m[3] == ">="}
		var err error
		if l.what == "oldest" {
			l.age, err = parseAge(m[4])
		} else {
			l.count, err = parseCount(m[4])
		}
		if err != nil {
			return fmt.Errorf("%q in %q: %w", m[4], one, err)
		}
		*ls = append(*ls, l)
	}
	return nil
}

// Type implements pflag.Value.
func (ls *limits) Type() string { return "limitArray" }

// String implements pflag.Value.
func (ls *limits) String() string { return "" }

// check returns an error with the limits that are exceeded.
func (ls limits) check(s *admin.Stats, runs workflow.Counts, now time.Time) error {
	for _, l := range ls {
		if l.queue == "" {
			continue
		}
		if _, err := findQueue(s, l.queue); err != nil { // a misspelled queue would never exceed its limit
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
		if l.what == "blocked" || l.queue != "" && l.queue != q.Name {
			continue
		}
		if l.what == "oldest" {
			if !q.Oldest.IsZero() {
				oldest = max(oldest, now.Sub(q.Oldest), 0)
			}
			continue
		}
		if l.what == "held" {
			count += q.Held
			continue
		}
		count += *driver.CountOf(&q.Counts, pawl.State(l.what))
	}
	if l.what == "blocked" {
		count = runs.Blocked
	}
	if l.what == "oldest" {
		return plain.Span(oldest), oldest > l.age || l.inclusive && oldest == l.age
	}
	return strconv.Itoa(count), count > l.count || l.inclusive && count == l.count
}
