package system

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/beanstalkd"
)

// PawlBeanstalkd is this library over a server that is set up as that of [Beanstalkd], whose client is
// bare.
func PawlBeanstalkd() System {
	bare := new(beanstalkdServer)
	return System{
		Name:       Pawl().Name + "-beanstalkd",
		Durability: Synced,
		Settings:   fmt.Sprintf("%s; default options; bulk: %d goroutines", beanstalkdSettings, producers),
		Version:    "this checkout",
		Start:      bare.start,
		Open: func(ctx context.Context, dir string, server *Server) (Queue, error) {
			if err := bare.restart(ctx); err != nil {
				return nil, err
			}
			q, err := beanstalkd.Open(ctx, "beanstalkd://"+server.Addr, &beanstalkd.Options{
				Lease: beanstalkdTTR, Synced: true, Logger: hclog.NewNullLogger(),
			})
			if err != nil {
				return nil, err
			}
			return oneByOne{client{q}}, nil
		},
	}
}

// oneByOne is a client of an engine that stores one job a call.
type oneByOne struct{ client }

func (q oneByOne) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	return spread(ctx, payloads, q.Enqueue)
}
