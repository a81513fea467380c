package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Names that no queue, kind, or header key may have.
var badNames = []string{"a\x00b", "\x00", strings.Repeat("n", pawl.MaxNameBytes+1)}

func refuseTests() (tests []test) {
	refused := func(what string, change func(*pawl.Envelope)) {
		tests = append(tests,
			newTest(what, "A job that can never run is refused with an *InvalidError, and nothing is stored.", func(f *fixture) {
				e := &pawl.Envelope{Kind: "k"}
				change(e)
				f.invalid(f.try(e), "enqueue")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
			}),
		)
	}
	refused("no kind", of(""))
	for i, name := range badNames {
		refused(fmt.Sprint("a bad kind ", i), of(name))
		refused(fmt.Sprint("a bad queue ", i), func(e *pawl.Envelope) { e.Queue = name })
		refused(fmt.Sprint("a bad header key ", i), header(name, "v"))
	}
	refused("a header without a key", header("", "v"))
	refused("a header that is too large", header("h", strings.Repeat("v", pawl.MaxHeaderBytes)))
	refused("headers that are too large together", func(e *pawl.Envelope) {
		half := strings.Repeat("v", pawl.MaxHeaderBytes/2)
		e.Headers = map[string]string{"a": half, "b": half}
	})
	refused("too many headers", func(e *pawl.Envelope) {
		e.Headers = make(map[string]string)
		for i := range pawl.MaxHeaders + 1 {
			e.Headers[fmt.Sprint(i)] = ""
		}
	})
	refused("negative retries", func(e *pawl.Envelope) { e.MaxRetries = -1 })
	refused("too many retries", func(e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries + 1 })
	refused("a negative delay", after(-1))
	refused("a negative timeout", func(e *pawl.Envelope) { e.Timeout = -1 })
	refused("a bad policy", func(e *pawl.Envelope) {
		policy := pawl.Fixed(-time.Second)
		e.Policy = &policy
	})

	return append(tests, []test{
		newTest("no envelope", "A job that can never run is refused with an *InvalidError, and nothing is stored.", func(f *fixture) {
			f.invalid(f.try(&pawl.Envelope{Kind: "k"}, nil), "enqueue")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs stored")
		}),
		newTest("a payload that is too large",
			"A payload beyond the limit, 1 MiB by default, gives ErrPayloadTooLarge. A payload at the limit is accepted.", func(f *fixture) {
				const limit = pawl.DefaultMaxPayload
				err := f.try(&pawl.Envelope{Kind: "k", Payload: make([]byte, limit+1)})
				f.is(err, pawl.ErrPayloadTooLarge, "a byte too much")
				equal(f, len(f.fetch(1)), 0, "jobs stored")
				f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, limit) })
				equal(f, len(f.lease().Payload), limit, "payload")
			}),
		newTest("a fetch of no job", "Request.Max must be at least 1.", func(f *fixture) {
			f.add()
			for _, most := range []int{0, -1} {
				leases, err := f.q.Fetch(f.Context(), pawl.Request{Max: most})
				f.invalid(err, "fetch")
				equal(f, len(leases), 0, "leases")
			}
			f.lease()
		}),
		newTest("a fetch from a bad queue", "A fetch checks the names in its request. A refused fetch leases nothing.", func(f *fixture) {
			f.add()
			for _, name := range append([]string{""}, badNames...) {
				_, err := f.q.Fetch(f.Context(), pawl.Request{Queues: []string{pawl.DefaultQueue, name}, Max: 1})
				f.invalid(err, "fetch")
			}
			f.lease()
		}),
	}...)
}

func header(key, value string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Headers = map[string]string{key: value} }
}

// invalid requires the error for an invalid value.
func (f *fixture) invalid(err error, doing string) {
	f.Helper()
	f.is(err, pawl.ErrInvalid, doing)
	var invalid *pawl.InvalidError
	if !errors.As(err, &invalid) {
		f.Fatalf("%s: %v is no *InvalidError", doing, err)
	}
	if invalid.Field == "" || invalid.Reason == "" {
		f.Fatalf("%s: %#v does not say what is wrong", doing, invalid)
	}
}
