package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: the table can show every family, no two families have the same name, and the document of
// this repository has a place for the table.
func TestFamilies(t *testing.T) {
	require.NoError(t, torture.Check("../../../docs/reliability.md"))
}
