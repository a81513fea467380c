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
func difference(got, want *pawl.Envelope) (found string) {
	if got == nil || want == nil {
		if got == want {
			return ""
		}
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	differ := func(equal bool, field string, got, want any) {
		if !equal {
			found += fmt.Sprintf("%s is %v, want %v; ", field, got, want)
		}
	}
	instant := func(field string, got, want time.Time) { differ(got.Equal(want), field, got, want) }

	differ(got.ID == want.ID, "ID", got.ID, want.ID)
	differ(got.Origin == want.Origin, "Origin", got.Origin, want.Origin)
	differ(got.Kind == want.Kind, "Kind", got.Kind, want.Kind)
	differ(bytes.Equal(got.Payload, want.Payload), "Payload", brief(got.Payload), brief(want.Payload))
	instant("Created", got.Created, want.Created)
	differ(maps.Equal(got.Headers, want.Headers), "Headers", got.Headers, want.Headers)
	differ(got.Queue == want.Queue, "Queue", got.Queue, want.Queue)
	differ(got.Seq == want.Seq || want.Seq == 0, "Seq", got.Seq, want.Seq)
	differ(got.Priority == want.Priority, "Priority", got.Priority, want.Priority)
	instant("NotBefore", got.NotBefore, want.NotBefore)
	differ(got.Timeout == want.Timeout, "Timeout", got.Timeout, want.Timeout)
	differ(got.MaxRetries == want.MaxRetries, "MaxRetries", got.MaxRetries, want.MaxRetries)
	differ(policyText(got) == policyText(want), "Policy", policyText(got), policyText(want))
	differ(got.Attempts == want.Attempts, "Attempts", got.Attempts, want.Attempts)
	differ(got.Crashes == want.Crashes, "Crashes", got.Crashes, want.Crashes)
	differ(got.Failures == want.Failures, "Failures", got.Failures, want.Failures)
	differ(deathText(got) == deathText(want), "Death", deathText(got), deathText(want))
	differ(got.State == want.State, "State", got.State, want.State)
	instant("LeasedSince", got.LeasedSince, want.LeasedSince)
	differ(slices.EqualFunc(got.History, want.History, sameFailure), "History", got.History, want.History)
	differ(got.Delay == want.Delay, "Delay", got.Delay, want.Delay)
	differ(got.Key == want.Key, "Key", got.Key, want.Key)
	differ(got.IdempotencyKey == want.IdempotencyKey, "IdempotencyKey", got.IdempotencyKey, want.IdempotencyKey)
	differ(got.IdempotencyTTL == want.IdempotencyTTL, "IdempotencyTTL", got.IdempotencyTTL, want.IdempotencyTTL)
	differ(got.UniqueKey == want.UniqueKey, "UniqueKey", got.UniqueKey, want.UniqueKey)
	differ(statesText(got.UniqueIn) == statesText(want.UniqueIn), "UniqueIn", got.UniqueIn, want.UniqueIn)
	instant("Deadline", got.Deadline, want.Deadline)
	differ(got.Retain == want.Retain, "Retain", got.Retain, want.Retain)
	differ(got.KeyID == want.KeyID, "KeyID", got.KeyID, want.KeyID)
	differ(bytes.Equal(got.Signature, want.Signature), "Signature", brief(got.Signature), brief(want.Signature))
	differ(got.Cancelled == want.Cancelled, "Cancelled", got.Cancelled, want.Cancelled)
	instant("BackoffSince", got.BackoffSince, want.BackoffSince)
	instant("Completed", got.Completed, want.Completed)
	return found
}

// copied returns an envelope that shares no memory with the given one.
func copied(e *pawl.Envelope) *pawl.Envelope {
	c := *e
	c.Payload, c.Headers, c.History = bytes.Clone(e.Payload), maps.Clone(e.Headers), slices.Clone(e.History)
	c.UniqueIn, c.Signature = slices.Clone(e.UniqueIn), bytes.Clone(e.Signature)
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

func brief(b []byte) string { return fmt.Sprintf("%d bytes %.16q", len(b), b) }

// statesText returns a set of states as one text.
func statesText(set []pawl.State) string {
	set = slices.Clone(set)
	slices.Sort(set)
	return fmt.Sprint(slices.Compact(set))
}

func policyText(e *pawl.Envelope) string {
	if e.Policy == nil {
		return "that of its kind"
	}
	return e.Policy.String()
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
