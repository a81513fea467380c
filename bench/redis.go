package main

import (
	"github.com/gopawl/pawl/bench/system"
)

// onRedis compares pawl with asynq on servers of Redis.
func onRedis() subject {
	of := subject{
		systems: []system.System{system.PawlRedis(), system.Asynq(), system.PawlRedisEverySec(), system.AsynqEverySec()},
		targets: redisTargets,
		metered: true,
		intro: `# Performance over Redis

This page compares how many jobs a second pawl and asynq store and run on a Redis server. All ran
in one run and took turns in each of the %d rounds of a case, so that other load on the machine
affects all. Trust the ratios. The figures belong to this machine, where the server shares two cores
with its clients.
`,
		promise: `Pawl and asynq run on a server that syncs each write before it answers. Pawl-everysec and
asynq-everysec run on one that syncs every second. With several rounds, a ratio is the median of the
ratios of the rounds.
`,
		repeat: `## How to repeat it

    cd bench && go run . redis

prints a table. It needs the Debian package redis-server. The benchmark starts
servers on sockets, with data of their own, and stops them again.

` + flags,
	}
	of.cases = serverCases()
	return of
}

var redisTargets = []target{
	asynqGoal("drain, 16 no-op workers", "drain"),
	asynqGoal("64 producers", "producers"),
}

// asynqGoal is a goal for both durabilities.
func asynqGoal(name, figure string) target {
	asynq, everySec := system.Asynq().Name, system.AsynqEverySec().Name
	return target{name: name, goal: "5 times asynq", parts: []part{
		{atLeast, 5, named(" times asynq", pawlBy(figure, asynq, figure))},
		{atLeast, 5, named(" times asynq, each second", by(system.PawlRedisEverySec().Name, figure, everySec, figure))},
	}}
}
