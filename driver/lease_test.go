package driver_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

func TestLeaseSettled(t *testing.T) {
	var l pawl.Lease
	require.False(t, driver.Settled(&l))
	driver.MarkSettled(&l)
	require.True(t, driver.Settled(&l))
	driver.MarkSettled(&l)
	require.True(t, driver.Settled(&l), "for good")
}

// Rule: an attempt that did not begin took no time. One that began has taken the time until now.
func TestLeaseTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l pawl.Lease
		require.Zero(t, driver.Took(&l))
		l.Started = time.Now()
		require.Zero(t, driver.Took(&l))
		<-time.After(1500 * time.Millisecond)
		require.Equal(t, 1500*time.Millisecond, driver.Took(&l))
	})
}

func TestCancellationFiresOnce(t *testing.T) {
	var s driver.Cancellation
	n := 0
	s.OnFire(func() { n++ })
	require.False(t, s.Fired())
	require.Zero(t, n)
	s.Fire()
	require.True(t, s.Fired())
	require.Equal(t, 1, n)
	s.Fire()
	require.Equal(t, 1, n)
}

// Rule: whoever comes late is called at once, and each latecomer is.
func TestCancellationCallsLatecomersAtOnce(t *testing.T) {
	var s driver.Cancellation
	s.Fire()
	n := 0
	s.OnFire(func() { n++ })
	require.Equal(t, 1, n)
	s.OnFire(func() { n += 10 })
	require.Equal(t, 11, n)
	s.OnFire(nil)
	s.Fire()
	require.Equal(t, 11, n)
}

// Rule: nobody takes the place of another who listens.
func TestCancellationCallsEverybody(t *testing.T) {
	var s driver.Cancellation
	var called []string
	s.OnFire(func() { called = append(called, "first") })
	s.OnFire(nil)
	s.OnFire(func() { called = append(called, "second") })
	s.Fire()
	require.Equal(t, []string{"first", "second"}, called)
}

// Rule: the function may look at the cancellation that calls it.
func TestCancellationIsNotLockedWhileItCalls(t *testing.T) {
	var s driver.Cancellation
	n := 0
	s.OnFire(func() {
		require.True(t, s.Fired())
		s.Fire()
		s.OnFire(func() { n++ })
	})
	s.Fire()
	require.Equal(t, 1, n)
}

func TestNilCancellationNeverFires(t *testing.T) {
	var s *driver.Cancellation
	s.OnFire(func() { t.Error("it fired") })
	s.Fire()
	require.False(t, s.Fired())
}

// Rule: however Fire and OnFire meet, a function is called exactly once.
func TestCancellationOfManyGoroutines(t *testing.T) {
	for range 1000 {
		var s driver.Cancellation
		var n atomic.Int32
		var all sync.WaitGroup
		for range 2 {
			all.Go(s.Fire)
		}
		all.Go(func() { s.OnFire(func() { n.Add(1) }) })
		all.Wait()
		require.True(t, s.Fired())
		require.Equal(t, int32(1), n.Load())
	}
}
