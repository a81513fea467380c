package main

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

// schedules fills a file with the schedule of a program: hourly.
func schedules(f *file) {
	s, err := schedule.Open(f.q, nil)
	require.NoError(f.t, err)
	defer s.Close()
	require.NoError(f.t, s.Sync(context.Background(), schedule.Job("hourly", "@hourly", pawl.Define[string]("greet"), "ada")))
}
