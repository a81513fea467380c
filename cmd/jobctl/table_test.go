package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// fitted returns a table of runs on a screen of that many columns.
func fitted(fit int, rows ...[]string) string {
	var b bytes.Buffer
	t := table{out: bufio.NewWriter(&b), fit: fit, columns: []column{
		{title: "RUN", spare: 1}, {title: "FLOW", cut: middle}, {title: "N", right: true, spare: 2}, {title: "WHEN"}, {title: "ERROR", cut: end},
	}}
	for _, row := range rows {
		t.add(row...)
	}
	t.flush()
	_ = t.out.Flush()
	return b.String()
}

// Rule: on a narrow screen a table omits empty columns, then optional columns, and then shortens
// sentences at the end and names in the middle; it removes no more than necessary. Otherwise it
// is complete.
func TestTablesFit(t *testing.T) {
	row := []string{"01a20251", "orders-of-the-north", "3", "-", "no such mailbox there"}
	head := func(fit int) string {
		head, _, _ := strings.Cut(fitted(fit, row), "\n")
		return strings.Join(strings.Fields(head), " ")
	}
	require.Equal(t, "RUN       FLOW                 N  WHEN  ERROR\n01a20251  orders-of-the-north  3  -     no such mailbox there\n", fitted(0, row))
	require.Equal(t, fitted(0, row), fitted(61, row))
	require.Equal(t, "RUN FLOW N ERROR", head(60))
	require.Equal(t, "FLOW N ERROR", head(54))
	require.Equal(t, "FLOW                 ERROR\norders-of-the-north  no such mailbox t…\n", fitted(39, row))
	require.Equal(t, "FLOW      ERROR\norde…rth  no such mai…\n", fitted(22, row))
	require.Equal(t, "FLOW      ERROR\norde…rth  no such mai…\n", fitted(5, row), "what cannot be shorter stays")
}

// Rule: no line is wider than the screen, whatever it contains, including lines after the first
// portion.
func TestTablesStayFitted(t *testing.T) {
	var rows [][]string
	for n := range 2*tablePortion + 1 {
		rows = append(rows, []string{"01a20251", strings.Repeat("語", n%40), "3", "", strings.Repeat("é", n/10)})
	}
	for line := range strings.Lines(fitted(40, rows...)) {
		require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 40, line)
	}
}
