package pawl

import (
	"slices"
	"strings"

	"github.com/gopawl/pawl/internal/ellipsis"
)

// validate checks everything about an envelope that does not depend on a queue's
// settings. Its error is an [*InvalidError].
func (e *Envelope) validate() error {
	if e == nil {
		return invalid("job", "it is nil")
	}
	if err := checkName("kind", e.Kind); err != nil {
		return err
	}
	for _, name := range [...]string{e.Queue, e.Origin} {
		if name == "" {
			continue
		}
		if err := checkName("queue", name); err != nil {
			return err
		}
	}
	switch {
	case e.MaxRetries < 0 || e.MaxRetries > MaxMaxRetries:
		return invalid("max retries", "%d is not between 0 and %d", e.MaxRetries, MaxMaxRetries)
	case e.Delay < 0:
		return invalid("delay", "%v is negative; leave it out to run now", e.Delay)
	case e.Timeout < 0:
		return invalid("timeout", "%v is negative; leave it out to use the worker's", e.Timeout)
	case e.Cost < 0 || e.Cost > MaxCost:
		return invalid("cost", "%d is not between 1 and %d", e.Cost, MaxCost)
	case e.Weight < 0 || e.Weight > MaxTurns:
		return invalid("weight", "%d is not between 1 and %d", e.Weight, MaxTurns)
	case e.Policy != nil && e.Policy.Err() != nil:
		return e.Policy.Err()
	case len(e.Headers) > MaxHeaders:
		return invalid("headers", "%d of them, at most %d are allowed", len(e.Headers), MaxHeaders)
	}
	if e.Cursor != nil && (len(e.Cursor) == 0 || len(e.Cursor) > MaxCursor) {
		return invalid("cursor", "%d bytes are not between 1 and %d", len(e.Cursor), MaxCursor)
	}
	if err := e.validKeys(); err != nil {
		return err
	}
	if err := e.validPrerequisites(); err != nil {
		return err
	}
	size := 0
	for key, value := range e.Headers {
		if err := checkName("header key", key); err != nil {
			return err
		}
		size += len(key) + len(value)
	}
	if size > MaxHeaderBytes {
		return invalid("headers", "%d bytes of them, at most %d are allowed", size, MaxHeaderBytes)
	}
	return nil
}

// validKeys checks what belongs to the keys of a job, and its lifetime.
func (e *Envelope) validKeys() error {
	for _, key := range [...]struct{ field, value string }{
		{"unique key", e.UniqueKey}, {"idempotency key", e.IdempotencyKey}, {"key", e.Key}, {"key ID", e.KeyID}, {"group", e.Group},
	} {
		if len(key.value) > MaxKeyBytes {
			return invalid(key.field, "%q is longer than %d bytes", ellipsis.Abbreviate(key.value, 32), MaxKeyBytes)
		}
	}
	if strings.ContainsRune(e.Key, 0) {
		return invalid("key", "%q has a NUL byte", ellipsis.Abbreviate(e.Key, 32))
	}
	if strings.ContainsRune(e.Group, 0) {
		return invalid("group", "%q has a NUL byte", ellipsis.Abbreviate(e.Group, 32))
	}
	for _, state := range e.UniqueIn {
		if !slices.Contains(States(), state) {
			return invalid("unique states", "%q is no state of a job", state)
		}
	}
	switch {
	case e.UniqueKey == "" && len(e.UniqueIn) > 0:
		return invalid("unique key", "it is empty, and there are states for it")
	case e.OnConflict > Replace:
		return invalid("conflict", "%d is none of UseExisting, Reject, Replace", e.OnConflict)
	case e.IdempotencyTTL < 0:
		return invalid("idempotency TTL", "%v is negative; leave it out for %v", e.IdempotencyTTL, DefaultIdempotencyTTL)
	case e.Retain < 0:
		return invalid("retention", "%v is negative; leave it out to keep no record", e.Retain)
	case !e.Deadline.IsZero() && e.NotBefore.After(e.Deadline):
		return invalid("deadline", "%v lies before the time %v at which the job may start", e.Deadline.Round(0), e.NotBefore.Round(0))
	case len(e.Signature) > maxSignature:
		return invalid("signature", "%d bytes, at most %d are allowed", len(e.Signature), maxSignature)
	}
	return nil
}

// validPrerequisites checks what a job waits for. A job that replaces another one cannot wait: a job that it
// waits for may itself wait for the replaced one.
func (e *Envelope) validPrerequisites() error {
	switch n := len(e.After) + len(e.AfterAny); {
	case n == 0:
		return nil
	case n > MaxAfter:
		return invalid("prerequisites", "%d jobs, at most %d are allowed; make a group with a callback", n, MaxAfter)
	case slices.Contains(e.After, ID{}) || slices.Contains(e.AfterAny, ID{}):
		return invalid("prerequisites", "one has no ID")
	case slices.Contains(e.After, e.ID) || slices.Contains(e.AfterAny, e.ID):
		return invalid("prerequisites", "job %s would wait for itself", e.ID)
	case e.OnConflict == Replace:
		return invalid("prerequisites", "a job that replaces another one has none")
	}
	return nil
}

func checkName(field, name string) error {
	switch {
	case name == "":
		return invalid(field, "it is empty; give it a name")
	case len(name) > MaxNameBytes:
		return invalid(field, "%q is longer than %d bytes", ellipsis.Abbreviate(name, 32), MaxNameBytes)
	case strings.ContainsRune(name, 0):
		return invalid(field, "%q has a NUL byte", name)
	}
	return nil
}
