package metrics

import (
	"math"
	"strconv"
	"strings"
)

// page is a page in the text format of Prometheus; see
// https://prometheus.io/docs/instrumenting/exposition_formats/.
type page struct{ text []byte }

// family begins the samples of one name.
func (p *page) family(name, kind, help string) {
	p.text = append(p.text, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// sample writes a value. Labels are names and values by turns.
func (p *page) sample(name string, value float64, labels ...string) {
	p.text = append(p.text, name...)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		p.text = append(p.text, separator+labels[i]+`="`+escape(labels[i+1])+`"`...)
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(append(append(p.text, ' '), number(value)...), '\n')
}

// histogram writes the cumulative buckets of a distribution, its sum, and its count.
func (p *page) histogram(name string, h histogram, labels ...string) {
	below := int64(0)
	for i, bound := range bounds {
		below += h.buckets[i]
		p.sample(name+"_bucket", float64(below), append(labels, "le", number(bound))...)
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

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// escape quotes the value of a label. The format has valid UTF-8 only.
func escape(value string) string { return escaper.Replace(strings.ToValidUTF8(value, "\uFFFD")) }
