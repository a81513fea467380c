package system

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/redis"
)

// PawlRedis is this library on a Redis that syncs every change before it answers. It has the name of
// [Pawl], which takes no part in a comparison with it.
func PawlRedis() System { return pawlRedis(Pawl().Name, "always", Synced) }

// PawlRedisEverySec is this library on a Redis that syncs every second, like [AsynqEverySec].
func PawlRedisEverySec() System {
	return pawlRedis(Pawl().Name+"-everysec", "everysec", "synced every second")
}

func pawlRedis(name, appendfsync, durability string) System {
	return System{
		Name:       name,
		Durability: durability,
		Settings:   "Redis on a Unix socket, appendonly yes, appendfsync " + appendfsync + ", no snapshots; default options",
		Version:    "this checkout",
		Start: func(ctx context.Context, dir string) (*Server, error) {
			return startRedis(ctx, dir, appendfsync)
		},
		Open: openPawlRedis,
	}
}

func openPawlRedis(ctx context.Context, _ string, server *Server) (Queue, error) {
	rdb := redisClient(server.Addr)
	defer rdb.Close()
	if err := emptyRedis(ctx, rdb); err != nil {
		return nil, err
	}
	q, err := redis.Open(ctx, "unix://"+server.Addr, &redis.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		return nil, err
	}
	return client{q}, nil
}
