package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
)

// retry makes dead messages ready again, with all their retries.
func (p *program) retry(ctx context.Context, flags *flag.FlagSet, args []string) error {
	ids, err := p.parseIDs(flags, "[ID...]", args)
	if err != nil {
		return err
	}
	return p.change("retried by the next sync", func(s dlq.Store) (int, error) {
		if len(ids) == 0 {
			return dlq.RetryAll(ctx, s, nil, pawl.Filter{Kind: send.Name()})
		}
		return dlq.Retry(ctx, s, nil, ids...)
	})
}

// drop removes dead messages permanently.
func (p *program) drop(ctx context.Context, flags *flag.FlagSet, args []string) error {
	ids, err := p.parseIDs(flags, "ID...", args)
	if err == nil && len(ids) == 0 {
		err = usageError{"drop needs the IDs of the messages"}
	}
	if err != nil {
		return err
	}
	return p.change("dropped", func(s dlq.Store) (int, error) { return dlq.Delete(ctx, s, ids...) })
}

// change opens the file, changes dead messages and prints how many.
func (p *program) change(done string, fn func(dlq.Store) (int, error)) (err error) {
	q, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	n, err := fn(q)
	fmt.Fprintf(p.stdout, "%d %s\n", n, done)
	return err
}

func (p *program) parseIDs(flags *flag.FlagSet, operands string, args []string) ([]pawl.ID, error) {
	args, err := p.parse(flags, operands, args)
	if err != nil {
		return nil, err
	}
	ids := make([]pawl.ID, len(args))
	for i, arg := range args {
		if ids[i], err = pawl.ParseID(arg); err != nil {
			return nil, usageError{err.Error()}
		}
	}
	return ids, nil
}
