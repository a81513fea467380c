package metrics

import (
	"math"
	"strconv"
	"strings"
)

// page is a page in the text format of Prometheus; see
// https://prometheus.io/docs/instrumenting/exposition_formats/.
type page struct{ text []byte }

// write writes all samples of a family.
func (p *page) write(f *Family) {
	p.text = append(p.text, "# HELP "+f.Name+" "+f.Help+"\n# TYPE "+f.Name+" "+f.Type+"\n"...)
	for _, s := range f.Samples {
		labels := make([]string, 0, 2*len(f.Labels)+2)
		for i, name := range f.Labels {
			labels = append(labels, name, s.Values[i])
		}
		if s.Histogram == nil {
			p.sample(f.Name, s.Value, labels...)
			continue
		}
		p.histogram(f.Name, s.Histogram, labels...)
	}
}

// sample writes a value. Labels are alternating names and values.
func (p *page) sample(name string, value float64, labels ...string) {
	p.text = append(p.text, name...)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		p.text = append(p.text, separator+labels[i]+`="`+escaper.Replace(labels[i+1])+`"`...)
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(append(append(p.text, ' '), number(value)...), '\n')
}

// histogram writes the cumulative buckets of a distribution, its sum, and its count.
func (p *page) histogram(name string, h *Histogram, labels ...string) {
	for i, bound := range h.Bounds {
		p.sample(name+"_bucket", float64(h.Counts[i]), append(labels, "le", number(bound))...)
	}
	p.sample(name+"_bucket", float64(h.Count), append(labels, "le", "+Inf")...)
	p.sample(name+"_sum", h.Sum, labels...)
	p.sample(name+"_count", float64(h.Count), labels...)
}

func number(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		return strconv.FormatInt(int64(value), 10)
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// escaper quotes the value of a label.
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
