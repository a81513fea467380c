package report

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMarkdownTable(t *testing.T) {
	var out strings.Builder
	Table(&out, "lr", [][]string{{"system", "rate"}, {"a|b", "12"}, {"größer", "100\u00a0000"}})
	assert.Equal(t, strings.Join([]string{
		`| system |    rate |`,
		`|--------|--------:|`,
		`| a\|b   |      12 |`,
		`| größer | 100` + "\u00a0" + `000 |`,
		``, ``,
	}, "\n"), out.String())
}

func TestFold(t *testing.T) {
	var out strings.Builder
	Fold(&out, "- ", strings.Repeat("word ", 20)+strings.Repeat("x", 100))
	assert.Equal(t, "- "+strings.TrimSpace(strings.Repeat("word ", 17))+"\n  word word word\n  "+strings.Repeat("x", 100)+"\n", out.String())
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0:         "0",
		0.0031234: "0.00312",
		0.5:       "0.500",
		0.99949:   "0.999",
		0.9996:    "1.00",
		1.234:     "1.23",
		9.996:     "10.0",
		12.34:     "12.3",
		99.96:     "100",
		1234.5:    "1234",
		12345:     "12\u00a0345",
		1234567:   "1\u00a0234\u00a0567",
		-12345:    "-12\u00a0345",
		-0.25:     "-0.250",
	} {
		assert.Equal(t, want, Number(v))
	}
}

func TestInspect(t *testing.T) {
	m, err := Inspect(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, m.Sync)
	_, err = Inspect(filepath.Join(t.TempDir(), "absent"))
	assert.Error(t, err)
}

// Rule: results are compared round by round, so that a slow round of the machine counts less.
func TestCompareRoundByRound(t *testing.T) {
	var all Results
	for _, v := range []float64{100, 10, 100} { // the machine was busy in the second round
		all.Add("slow", "x", "", "", v)
		all.Add("slower", "x", "", "", v/4)
	}
	slow, slower := all.Find("slow", "x"), all.Find("slower", "x")
	assert.InDelta(t, 4, Ratio(slow, slower), 1e-9)
	all.Add("slower", "x", "", "", 1)
	assert.InDelta(t, 100/13.75, Ratio(slow, slower), 1e-9, "of the medians, with other rounds")
}

// Rule: a percentile is a measured value.
func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	assert.EqualValues(t, 100, Percentile(sorted, 50))
	assert.EqualValues(t, 198, Percentile(sorted, 99))
	assert.EqualValues(t, 1, Percentile(sorted[:1], 99))
}
