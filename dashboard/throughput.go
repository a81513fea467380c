package dashboard

import (
	"errors"
	"time"

	"github.com/gopawl/pawl/admin"
)

// lengths are the parts of the week that a page of the throughput may show.
var lengths = []struct {
	Name string
	last time.Duration
}{{"1h", time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// throughputPage is what the page of the throughput shows.
type throughputPage struct {
	Queue   string
	Last    string
	Lengths []string
	Chart   *chart
}

func throughput(q *request) error {
	p := &throughputPage{Queue: q.Form.Get("queue"), Last: lengths[0].Name}
	ask, known := admin.ThroughputQuery{Queue: p.Queue}, false
	for _, l := range lengths {
		p.Lengths = append(p.Lengths, l.Name)
		if name := q.Form.Get("last"); l.Name == name || name == "" && !known {
			p.Last, ask.Last, known = l.Name, l.last, true
		}
	}
	if !known {
		return invalid("last", "it is none of 1h, 24h, and 7d")
	}
	words, title := []string{"throughput"}, "Throughput"
	if p.Queue != "" {
		if _, err := q.knownQueue(p.Queue); err != nil {
			return err
		}
		words, title = append(words, "--queue", p.Queue), "Throughput of queue "+p.Queue
	}
	var err error
	if p.Chart, err = q.chartOf(ask); err != nil {
		return err
	}
	return q.show("throughput", "throughput", title, p, q.command(append(words, "--last", p.Last)...))
}

// chart is a throughput as a picture and as a table.
type chart struct {
	admin.Throughput
	Width int
	Bars  []bar
	Marks []mark
	Most  int64 // of a period
	Total admin.Totals
	Rows  []chartRow // the periods in which something happened
}

// bar is a rectangle of a chart.
type bar struct {
	X, Y, Height float64
	Kind         string // succeeded, retried, died, or enqueued
}

// mark is where a build began to run jobs.
type mark struct {
	X float64
	admin.Build
}

type chartRow struct {
	admin.Period
	Builds []admin.Build
}

// Sizes of a chart, in units of its picture. A period has a bar for what was enqueued, and one for what ended.
const (
	barWidth    = 10
	chartHeight = 100
)

// chartOf reads a throughput, nil if the engine keeps none.
func (q *request) chartOf(ask admin.ThroughputQuery) (*chart, error) {
	t, err := q.d.admin.Throughput(q.ctx, ask)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &chart{Throughput: t, Width: barWidth * len(t.Periods)}
	c.Total = t.Total()
	for i := range t.Periods {
		p := &t.Periods[i]
		c.Most = max(c.Most, p.Enqueued, p.Succeeded+p.Retried+p.Died)
	}
	for i := range t.Periods {
		p, builds := &t.Periods[i], t.BuildsIn(i)
		x := float64(barWidth * i)
		c.stack(x, part{"enqueued", p.Enqueued})
		c.stack(x+barWidth/2, part{"succeeded", p.Succeeded}, part{"retried", p.Retried}, part{"died", p.Died})
		for _, b := range builds {
			c.Marks = append(c.Marks, mark{x, b})
		}
		if p.Counted() || builds != nil {
			c.Rows = append(c.Rows, chartRow{*p, builds})
		}
	}
	return c, nil
}

// rate is how often a transition happened.
type rate struct {
	Name      string
	PerSecond float64
}

// recent is how many minutes the rates cover. The last of these minutes has not ended.
const recent = 5

// rates returns the rates of the last minutes of a chart by minute.
func (c *chart) rates(now time.Time) []rate {
	periods := c.Periods[len(c.Periods)-recent:]
	var sum admin.Totals
	for i := range periods {
		sum.Add(periods[i].Totals)
	}
	seconds := max(1, now.Sub(periods[0].At).Seconds())
	return []rate{
		{"Enqueued", float64(sum.Enqueued) / seconds},
		{"Succeeded", float64(sum.Succeeded) / seconds},
		{"Failed, to be retried", float64(sum.Retried) / seconds},
		{"Became dead", float64(sum.Died) / seconds},
	}
}

// part is a part of a stack.
type part struct {
	kind string
	n    int64
}

// stack puts rectangles on each other.
func (c *chart) stack(x float64, parts ...part) {
	y := float64(chartHeight)
	for _, s := range parts {
		if s.n > 0 {
			height := chartHeight * float64(s.n) / float64(c.Most)
			y -= height
			c.Bars = append(c.Bars, bar{x, y, height, s.kind})
		}
	}
}
