package postgres_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl/postgres"
)

// inVirtualTime runs a test in which time passes only while everything waits for it, and not while the server
// works. So no lease ends and no call gives up because the machine is slow. A client is opened with virtual.
func inVirtualTime(t *testing.T, test func(t *testing.T, schema string)) {
	t.Helper()
	schema := newSchema(t)
	synctest.Test(t, func(t *testing.T) { test(t, schema) })
}

// virtual makes a client follow virtual time. It does not listen, since time would not pass while it does.
func virtual(o *postgres.Options) {
	o.Now, o.NoListen = time.Now, true
	if o.Poll != postgres.NoPoll {
		o.Poll = 10 * time.Second
	}
}
