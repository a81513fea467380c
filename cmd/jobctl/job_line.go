package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/driver"
)

// jobLine is a job to enqueue: a line of `job enqueue --batch` or `--file`, or the values of the flags.
type jobLine struct {
	Kind           string            `json:"kind"`
	Args           json.RawMessage   `json:"args"`
	Queue          string            `json:"queue"`
	Priority       int               `json:"priority"`
	Delay          admin.Span        `json:"delay"`
	At             admin.Stamp       `json:"at"`
	Deadline       admin.Stamp       `json:"deadline"`
	RunTimeout     admin.Span        `json:"run_timeout"`
	MaxRetries     int               `json:"max_retries"`
	Unique         string            `json:"unique"`
	UniqueIn       []string          `json:"unique_in"`
	OnConflict     string            `json:"on_conflict"`
	IdempotencyKey string            `json:"idempotency_key"`
	IdempotencyTTL admin.Span        `json:"idempotency_ttl"`
	Retain         admin.Span        `json:"retain"`
	Key            string            `json:"key"`
	Cost           int               `json:"cost"`
	Weight         int               `json:"weight"`
	Group          string            `json:"group"`
	After          []pawl.ID         `json:"after"`
	AfterAny       []pawl.ID         `json:"after_any"`
	Headers        map[string]string `json:"headers"`
}

// header parses one --header.
func (l *jobLine) header(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("it must be a key, =, and a value")
	}
	if l.Headers == nil {
		l.Headers = make(map[string]string)
	}
	l.Headers[key] = value
	return nil
}

// clone returns a copy that a line may change.
func (l jobLine) clone() jobLine {
	l.Args = json.RawMessage("null")
	l.Headers = maps.Clone(l.Headers) // the line adds to the headers of the flags
	l.UniqueIn, l.After, l.AfterAny = slices.Clone(l.UniqueIn), slices.Clone(l.After), slices.Clone(l.AfterAny)
	return l
}

// decodeLine overrides values with those of a line. It rejects an unknown field.
func decodeLine(text []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("text follows the object; a line has one job")
	}
	return nil
}

// checked returns the job, if 'jobctl work' would not reject it either.
func (l *jobLine) checked() (*pawl.Envelope, error) {
	job, err := l.envelope()
	if err == nil {
		err = checkHandled(job)
	}
	return job, err
}

var conflicts = map[string]pawl.Conflict{"": pawl.UseExisting, "use_existing": pawl.UseExisting, "reject": pawl.Reject, "replace": pawl.Replace}

// envelope returns the job, with all checks that do not need its queue.
func (l *jobLine) envelope() (*pawl.Envelope, error) {
	payload, err := admin.EncodeJSON(l.Args)
	if err != nil {
		return nil, err
	}
	conflict, ok := conflicts[l.OnConflict]
	switch {
	case !ok:
		return nil, fmt.Errorf("on_conflict %q is not one of use_existing, reject, replace", l.OnConflict)
	case l.Priority < math.MinInt8 || l.Priority > math.MaxInt8:
		return nil, fmt.Errorf("priority %d is not between %d and %d", l.Priority, math.MinInt8, math.MaxInt8)
	case l.Delay != 0 && !l.At.IsZero():
		return nil, errors.New("delay and at were given; choose one")
	}
	job := &pawl.Envelope{
		Kind: l.Kind, Payload: payload, Queue: l.Queue, Priority: int8(l.Priority), Headers: l.Headers,
		Delay: l.Delay.Duration(), NotBefore: l.At.Time, Deadline: l.Deadline.Time,
		Timeout: l.RunTimeout.Duration(), MaxRetries: l.MaxRetries,
		UniqueKey: l.Unique, OnConflict: conflict,
		IdempotencyKey: l.IdempotencyKey, IdempotencyTTL: l.IdempotencyTTL.Duration(), Retain: l.Retain.Duration(),
		Key: l.Key, Cost: l.Cost, Weight: l.Weight, Group: l.Group, After: l.After, AfterAny: l.AfterAny,
	}
	for _, state := range l.UniqueIn {
		job.UniqueIn = append(job.UniqueIn, pawl.State(state))
	}
	if err := driver.CheckEnvelope(job); err != nil {
		return nil, err
	}
	return job, nil
}
