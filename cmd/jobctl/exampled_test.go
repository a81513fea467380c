package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a damaged row in which something is invalid is damage, not a wrong command line.
func TestDamageIsNoUsage(t *testing.T) {
	_, invalid := pawl.ParseID("none")
	require.ErrorIs(t, invalid, pawl.ErrInvalid)
	damaged := fmt.Errorf("run 1: %w: %w", pawl.ErrCorrupt, invalid)
	require.Equal(t, damaged, exampled("wf show", "jobctl wf show 1", damaged))
	require.NotEqual(t, invalid, exampled("wf show", "jobctl wf show 1", invalid))
}
