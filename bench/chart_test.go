package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bench/system"
)

// barsOf parses a chart and returns the titles of its bars, by their classes.
func barsOf(t *testing.T, picture string) map[string][]string {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(picture))
	bars := make(map[string][]string)
	class := ""
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return bars
		}
		require.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "title" && class != "" {
			var title string
			require.NoError(t, dec.DecodeElement(&title, &start))
			bars[class] = append(bars[class], title)
		}
		class = ""
		for _, attr := range start.Attr {
			if attr.Name.Local == "class" {
				class, _ = strings.CutPrefix(attr.Value, "bar ")
				if class == attr.Value {
					class = "" // no bar
				}
			}
		}
	}
}

func TestChart(t *testing.T) {
	var out strings.Builder
	chart(&out, sampleReport())
	bars := barsOf(t, out.String())
	assert.Len(t, bars["pawl"], len(panels))
	assert.Len(t, bars["ceiling"], len(panels))
	assert.Len(t, bars["weaker"], len(panels))
	assert.Len(t, bars["peer"], 2*len(panels))
	assert.Contains(t, bars["pawl"], "pawl: 96\u00a0000 jobs/s")
	assert.Contains(t, bars["peer"], "served: 0.600 ms")
	assert.NotContains(t, out.String(), "away", "it is absent")
}

func TestChartWithGaps(t *testing.T) {
	r := sampleReport()
	r.systems = append(r.systems, system.System{Name: "<&>", Durability: system.Synced})
	r.results = r.results[:4] // all but one of the first case
	var out strings.Builder
	chart(&out, r)
	bars := barsOf(t, out.String())
	assert.Len(t, bars["peer"], 1)
	assert.Contains(t, out.String(), "no figure")
	assert.Contains(t, out.String(), "not measured")
}

func TestChartOfNothing(t *testing.T) {
	var out strings.Builder
	chart(&out, comparison{})
	assert.Empty(t, barsOf(t, out.String()))
}
