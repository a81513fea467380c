package redis

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Errors of the server. Match them with errors.Is. The returned error also contains the message of the server.
var (
	// ErrUnavailable says that the server could not be reached within Options.Timeout, or that it accepts no
	// writes. Nothing was changed. Later calls connect again.
	ErrUnavailable = driver.NewSentinel("redis_unavailable", "the server is unavailable")
	// ErrMemory says that the memory of the server is full. Nothing was stored. Raise maxmemory, or make
	// room: run jobs, or remove some.
	ErrMemory = driver.NewSentinel("redis_memory", "the memory of the server is full")
	// ErrEvicts says that the server removes keys when its memory is full, and so would lose jobs. Set
	// maxmemory-policy to noeviction.
	ErrEvicts = driver.NewSentinel("redis_evicts", "the server evicts keys; set maxmemory-policy to noeviction")
	// ErrVersion says that the server is too old.
	ErrVersion = driver.NewSentinel("redis_version", "the server is older than Redis 7.0")
	// ErrNotQueue says that the server has no queue of this name, and Options.Existing is set.
	ErrNotQueue = driver.NewSentinel("redis_not_queue", "the server has no queue of this name")
	// ErrOlderFormat says that an older build wrote the keys. Drain the queue with that build, or open a queue of
	// another name.
	ErrOlderFormat = driver.NewSentinel("redis_older_format", "the keys have an older format than this build writes")
)

// refused reports whether the server answered with an error. If so, explained is the error for the caller, and the
// script has changed nothing unless that is an unknown outcome. Again says that the script may succeed later.
func refused(err error) (again, ok bool, explained error) {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false, false, nil
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	switch code {
	case "LOADING", "BUSY", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS":
		return true, true, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case "OOM":
		return false, true, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	if strings.Contains(answer.Error(), "-OOM ") || strings.Contains(answer.Error(), "OOM command not allowed") {
		return false, true, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	if strings.Contains(answer.Error(), "user_script") { // the script failed, perhaps after it has written
		return false, true, fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, err)
	}
	return false, true, err
}

// isFull reports whether the server refused the script because its memory is full.
func isFull(err error) bool {
	return errors.Is(err, ErrMemory) && !errors.Is(err, pawl.ErrUnknownOutcome)
}

// explain adds the sentinel to an error of a command that only reads.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, redis.ErrClosed) {
		return pawl.ErrClosed
	}
	if _, ok, explained := refused(err); ok {
		return explained
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// unsent reports whether an error says that a command did not reach the server.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
