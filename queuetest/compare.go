package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// ok requires that there is no error.
func (f *fixture) ok(err error, doing string) {
	f.Helper()
	if err != nil {
		f.beyond(err)
		f.Fatalf("%s: %v", doing, err)
	}
}

// is requires an error that matches want. A nil want requires no error.
func (f *fixture) is(err, want error, doing string) {
	f.Helper()
	if !errors.Is(err, want) {
		f.beyond(err)
		f.Fatalf("%s: error %v, want %v", doing, err, want)
	}
}

// equal requires that two values are equal.
func equal[T comparable](f *fixture, got, want T, what string) {
	f.Helper()
	if got != want {
		f.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sameTime requires that two times are the same instant.
func (f *fixture) sameTime(got, want time.Time, what string) {
	f.Helper()
	if !got.Equal(want) {
		f.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sameJobs requires the same jobs in the same order.
func (f *fixture) sameJobs(got, want []pawl.ID, what string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// same requires that two envelopes describe a job in the same way.
func (f *fixture) same(got, want *pawl.Envelope, what string) {
	f.Helper()
	if d := difference(got, want); d != "" {
		f.Fatalf("%s: %s", what, d)
	}
}

// difference names the fields in which two envelopes differ, or returns "". It compares
// times as instants, and an empty payload equals none. A wanted sequence of 0 equals any.
func difference(got, want *pawl.Envelope) string {
	if got == nil || want == nil {
		if got == want {
			return ""
		}
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	d := new(differing)

	field(d, got.ID == want.ID, "ID", got.ID, want.ID)
	field(d, got.Origin == want.Origin, "Origin", got.Origin, want.Origin)
	field(d, got.Kind == want.Kind, "Kind", got.Kind, want.Kind)
	field(d, bytes.Equal(got.Payload, want.Payload), "Payload", brief(got.Payload), brief(want.Payload))
	d.instant("Created", got.Created, want.Created)
	field(d, maps.Equal(got.Headers, want.Headers), "Headers", got.Headers, want.Headers)
	field(d, got.Queue == want.Queue, "Queue", got.Queue, want.Queue)
	field(d, got.Seq == want.Seq || want.Seq == 0, "Seq", got.Seq, want.Seq)
	field(d, got.Priority == want.Priority, "Priority", got.Priority, want.Priority)
	d.instant("NotBefore", got.NotBefore, want.NotBefore)
	field(d, got.Timeout == want.Timeout, "Timeout", got.Timeout, want.Timeout)
	field(d, got.MaxRetries == want.MaxRetries, "MaxRetries", got.MaxRetries, want.MaxRetries)
	field(d, samePolicy(got.Policy, want.Policy), "Policy", got.Policy, want.Policy)
	field(d, got.Attempts == want.Attempts, "Attempts", got.Attempts, want.Attempts)
	field(d, got.Crashes == want.Crashes, "Crashes", got.Crashes, want.Crashes)
	field(d, got.Failures == want.Failures, "Failures", got.Failures, want.Failures)
	field(d, sameDeath(got.Death, want.Death), "Death", got.Death, want.Death)
	field(d, got.State == want.State, "State", got.State, want.State)
	d.instant("LeasedSince", got.LeasedSince, want.LeasedSince)
	field(d, slices.EqualFunc(got.History, want.History, sameFailure), "History", got.History, want.History)
	field(d, got.Delay == want.Delay, "Delay", got.Delay, want.Delay)
	field(d, got.Key == want.Key, "Key", got.Key, want.Key)
	field(d, got.Cost == want.Cost, "Cost", got.Cost, want.Cost)
	field(d, got.Weight == want.Weight, "Weight", got.Weight, want.Weight)
	field(d, got.FairTag == want.FairTag, "FairTag", got.FairTag, want.FairTag)
	field(d, got.HoldsKey == want.HoldsKey, "HoldsKey", got.HoldsKey, want.HoldsKey)
	field(d, got.IdempotencyKey == want.IdempotencyKey, "IdempotencyKey", got.IdempotencyKey, want.IdempotencyKey)
	field(d, got.IdempotencyTTL == want.IdempotencyTTL, "IdempotencyTTL", got.IdempotencyTTL, want.IdempotencyTTL)
	field(d, got.UniqueKey == want.UniqueKey, "UniqueKey", got.UniqueKey, want.UniqueKey)
	field(d, sameStates(got.UniqueIn, want.UniqueIn), "UniqueIn", got.UniqueIn, want.UniqueIn)
	d.instant("Deadline", got.Deadline, want.Deadline)
	field(d, got.Retain == want.Retain, "Retain", got.Retain, want.Retain)
	field(d, got.KeyID == want.KeyID, "KeyID", got.KeyID, want.KeyID)
	field(d, bytes.Equal(got.Signature, want.Signature), "Signature", brief(got.Signature), brief(want.Signature))
	field(d, got.Cancelled == want.Cancelled, "Cancelled", got.Cancelled, want.Cancelled)
	d.instant("BackoffSince", got.BackoffSince, want.BackoffSince)
	d.instant("Completed", got.Completed, want.Completed)
	field(d, bytes.Equal(got.Result, want.Result) && (got.Result == nil) == (want.Result == nil),
		"bytes of Result", len(got.Result), len(want.Result))
	field(d, got.Group == want.Group, "Group", got.Group, want.Group)
	field(d, bytes.Equal(got.Cursor, want.Cursor) && (got.Cursor == nil) == (want.Cursor == nil), "Cursor", got.Cursor, want.Cursor)
	field(d, sameIDs(got.After, want.After), "After", got.After, want.After)
	field(d, sameIDs(got.AfterAny, want.AfterAny), "AfterAny", got.AfterAny, want.AfterAny)
	return d.found
}

// sameIDs compares IDs in any order.
func sameIDs(a, b []pawl.ID) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id pawl.ID) bool { return !slices.Contains(b, id) })
}

// differing names the fields that differ. A walk compares millions of fields that do not, so only a
// field that differs is converted to text.
type differing struct{ found string }

func (d *differing) instant(name string, got, want time.Time) {
	field(d, got.Equal(want), name, got, want)
}

func field[T any](d *differing, equal bool, name string, got, want T) {
	if !equal {
		d.found += fmt.Sprintf("%s is %v, want %v; ", name, got, want)
	}
}

// copied returns an envelope that shares no memory with the given one.
func copied(e *pawl.Envelope) *pawl.Envelope {
	c := *e
	c.Payload, c.Headers, c.History = bytes.Clone(e.Payload), maps.Clone(e.Headers), slices.Clone(e.History)
	c.UniqueIn, c.Signature = slices.Clone(e.UniqueIn), bytes.Clone(e.Signature)
	c.Result, c.Cursor = bytes.Clone(e.Result), bytes.Clone(e.Cursor)
	if e.Policy != nil {
		policy := *e.Policy
		c.Policy = &policy
	}
	if e.Death != nil {
		death := *e.Death
		c.Death = &death
	}
	return &c
}

// copies is copied for several envelopes. Nil stays nil.
func copies(jobs []*pawl.Envelope) []*pawl.Envelope {
	own := make([]*pawl.Envelope, len(jobs))
	for i, e := range jobs {
		if e != nil {
			own[i] = copied(e)
		}
	}
	return own
}

// brief is some bytes that are printed in short.
type brief []byte

func (b brief) String() string { return fmt.Sprintf("%d bytes %.16q", len(b), []byte(b)) }

// sameStates reports whether two sets of states are equal. A set may name a state twice.
func sameStates(a, b []pawl.State) bool {
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func samePolicy(a, b *pawl.Strategy) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b || a.String() == b.String()
}

func sameDeath(a, b *pawl.Death) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.At.Equal(b.At)
}

func deathText(e *pawl.Envelope) string {
	if e.Death == nil {
		return "none"
	}
	return fmt.Sprintf("%s at %v", e.Death.Reason, e.Death.At.UTC())
}

func sameFailure(a, b pawl.Failure) bool {
	return a.Attempt == b.Attempt && a.At.Equal(b.At) && a.Error == b.Error && a.Stack == b.Stack
}

// kinds returns the kinds of leases, in their order, as one text.
func kinds(leases []*pawl.Lease) (text string) {
	for _, l := range leases {
		text += l.Kind
	}
	return text
}

func kindsOf(jobs []*pawl.Envelope) (text string) {
	for _, e := range jobs {
		text += e.Kind
	}
	return text
}

func idsOf(jobs []*pawl.Envelope) (ids []pawl.ID) {
	for _, e := range jobs {
		ids = append(ids, e.ID)
	}
	return ids
}

// unchanged returns a check that nothing in the queue has changed since this call.
func (f *fixture) unchanged() func(what string) {
	f.Helper()
	before := f.list(pawl.Filter{})
	return func(what string) {
		f.Helper()
		now := f.list(pawl.Filter{})
		f.sameJobs(idsOf(now), idsOf(before), what+", the jobs")
		for i, e := range now {
			f.same(e, before[i], what+", job "+e.ID.String())
		}
	}
}
