package main

import (
	"github.com/gopawl/pawl/bench/system"
)

// onEngines compares pawl over SQLite with other queues in SQLite, and pawl over beanstalkd and over NATS
// JetStream with the clients of these alone.
func onEngines() subject {
	of := subject{targets: enginesTargets}
	of.systems = []system.System{system.PawlSQLite()}
	for _, s := range system.Embedded() {
		if s.Durability == system.Synced {
			of.systems = append(of.systems, s)
		}
	}
	of.systems = append(of.systems, system.PawlBeanstalkd(), system.Beanstalkd(),
		system.PawlJetStream(), system.JetStream())
	of.cases = serverCases()
	return of
}

var enginesTargets = []target{
	engineGoal("drain, 16 no-op workers", "drain"),
	engineGoal("64 producers", "producers"),
}

// engineGoal is a goal for all three engines.
func engineGoal(name, figure string) target {
	return target{name: name, goal: "3 times goqite, 0.7 of the clients of beanstalkd and NATS", parts: []part{
		{atLeast, 3, named(" times goqite", by(system.PawlSQLite().Name, figure, "goqite", figure))},
		{atLeast, 0.7, named(" of beanstalkd's client", by(system.PawlBeanstalkd().Name, figure, system.Beanstalkd().Name, figure))},
		{atLeast, 0.7, named(" of NATS's client", by(system.PawlJetStream().Name, figure, system.JetStream().Name, figure))},
	}}
}
