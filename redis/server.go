package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gopawl/pawl"
)

// The pause between two tries to reach the server.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

// eval runs the script, and returns its answer and the values after it. If the connection breaks, eval
// tries again until Options.Timeout. That is safe, since the server carries out each group once.
func (q *Queue) eval(arguments []any) ([]string, error) {
	if _, age := q.clock.now(); q.opts.Now == nil && age > clockAge {
		_ = q.clock.set(context.Background(), q) // if this fails, the next group tries again
	}
	began, pause, sent := time.Now(), leastPause, false
	for {
		reply, err := q.tryEval(arguments)
		if err == nil {
			return reply, nil
		}
		again, answered, explained := refused(err)
		switch {
		case answered && !again && sent: // an earlier try may have been carried out
			return nil, fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, explained)
		case answered && !again:
			return nil, explained
		}
		sent = sent || !answered && !unsent(err)
		if time.Since(began) > q.opts.Timeout || q.intake.Refuses() != nil {
			switch {
			case sent:
				return nil, fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, err)
			case answered:
				return nil, explained
			}
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		time.Sleep(pause)
		pause = min(2*pause, mostPause)
	}
}

// tryEval is eval for one try.
func (q *Queue) tryEval(arguments []any) ([]string, error) {
	ctx, keys := context.Background(), []string{q.prefix}
	found, err := q.rdb.EvalSha(ctx, script.Hash(), keys, arguments...).Slice()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		found, err = q.rdb.Eval(ctx, source, keys, arguments...).Slice()
	}
	if err != nil {
		return nil, err
	}
	reply := make([]string, len(found))
	for i, part := range found {
		text, ok := part.(string)
		if !ok {
			return nil, fmt.Errorf("answer of the script: %w: part %d is a %T", pawl.ErrCorrupt, i, part)
		}
		reply[i] = text
	}
	if len(reply) == 0 {
		return nil, fmt.Errorf("answer of the script: %w: it is empty", pawl.ErrCorrupt)
	}
	return reply, nil
}
