package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

type itemsRequest struct {
	Run  pawl.ID
	Name string
	From uint64
}

// streamItems are items of a stream, in order.
type streamItems struct{ Items []workflow.Item[[]byte] }

var opItems = define(operation[itemsRequest, streamItems]{
	path: "workflows/items", work: lists, large: always[itemsRequest],
	do: func(ctx context.Context, a Admin, r *itemsRequest) (streamItems, error) {
		items, err := a.Workflows().Items(ctx, r.Run, r.Name, r.From)
		return streamItems{items}, err
	},
	check: func(r *itemsRequest, s *streamItems) error {
		next := max(r.From, 1)
		for i := range s.Items {
			if s.Items[i].N < next {
				return errors.New("it has items out of order")
			}
			next = s.Items[i].N + 1
		}
		return checkPage(len(s.Items), MaxLimit, "", "")
	},
})

func (w clientRuns) Items(ctx context.Context, run pawl.ID, name string, from uint64) ([]workflow.Item[[]byte], error) {
	got, err := ask(ctx, w.c, opItems, itemsRequest{run, name, from})
	return got.Items, err
}

func (d directRuns) Items(ctx context.Context, run pawl.ID, name string, from uint64) ([]workflow.Item[[]byte], error) {
	return readRuns(d, func(r *workflow.Reader) ([]workflow.Item[[]byte], error) {
		return r.Items(ctx, run, name, from, MaxLimit)
	})
}
