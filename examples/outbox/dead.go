package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// retry makes dead messages ready again, with all their retries.
func (p *program) retry(ctx context.Context, flags *flag.FlagSet, args []string) error {
	ids, err := p.parseIDs(flags, "[ID...]", args)
	if err != nil {
		return err
	}
	return p.change(ctx, "retried by the next sync", admin.Retry, ids)
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
	return p.change(ctx, "dropped", admin.Delete, ids)
}

// change does something to dead messages, to all without IDs, and prints to how many.
func (p *program) change(ctx context.Context, done string, verb admin.Verb, ids []pawl.ID) (err error) {
	c, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	n := 0
	err = c.Use(ctx, func(a admin.Admin) error {
		n = 0 // the owner of an earlier try may have ended
		ids, err := ids, error(nil)
		if len(ids) == 0 {
			ids, err = dead(ctx, a)
		}
		for some := range slices.Chunk(ids, admin.MaxIDs) {
			errs, failed := a.Do(ctx, admin.Action{Verb: verb}, some...)
			for _, e := range errs {
				if e == nil {
					n++
				}
			}
			err = errors.Join(append(errs, err, failed)...)
		}
		return err
	})
	fmt.Fprintf(p.stdout, "%d %s\n", n, done)
	return err
}

// dead returns the IDs of the dead messages.
func dead(ctx context.Context, a admin.Admin) (ids []pawl.ID, err error) {
	filter := admin.Filter{Filter: pawl.Filter{Kind: send.Name(), State: pawl.Dead}}
	for job, err := range admin.Jobs(ctx, a, admin.Query{Filter: filter, Detail: admin.IDs}) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, job.ID)
	}
	return ids, nil
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
