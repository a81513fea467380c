package admin

import (
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// Policy is a [pawl.Strategy] as data.
type Policy struct {
	Form       string   `json:"form"` // none, fixed or exponential
	Base       string   `json:"base"` // a duration
	Multiplier *float64 `json:"multiplier"`
	Cap        *string  `json:"cap"`    // a duration
	Jitter     *float64 `json:"jitter"` // a fraction
	FullJitter bool     `json:"full_jitter"`
}

// policyOf parses the result of [pawl.Strategy.String], which is exact; nil for any other text.
func policyOf(text string) *Policy {
	first, rest, more := strings.Cut(text, ", ")
	words := strings.Fields(first)
	p := &Policy{Base: "0s"}
	switch {
	case len(words) == 1 && words[0] == "none":
	case len(words) == 2 && words[0] == "fixed":
		p.Base = words[1]
	case len(words) == 4 && words[0] == "exponential" && words[2] == "×":
		multiplier, err := strconv.ParseFloat(words[3], 64)
		if err != nil {
			return nil
		}
		p.Base, p.Multiplier = words[1], &multiplier
	default:
		return nil
	}
	p.Form = words[0]
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ", ")
		limit, capped := strings.CutPrefix(part, "at most ")
		fraction, drawn := strings.CutPrefix(part, "jitter ")
		switch {
		case capped:
			p.Cap = &limit
		case drawn:
			f, err := strconv.ParseFloat(fraction, 64)
			if err != nil {
				return nil
			}
			p.Jitter = &f
		case part == "full jitter":
			p.FullJitter = true
		default:
			return nil
		}
	}
	return p
}

// strategy returns the policy of the job, from its data or else from its text; nil without one.
func (j *Job) strategy() (*pawl.Strategy, error) {
	p := j.PolicyData
	if p == nil && j.Policy == nil {
		return nil, nil
	}
	if p == nil {
		if p = policyOf(*j.Policy); p == nil {
			return nil, invalid("policy", "%q is not of the form \"exponential 5s × 2, at most 5m, full jitter\"", truncate(*j.Policy))
		}
	}
	s, err := p.Strategy()
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// Strategy returns the policy as a pawl.Strategy. Its error is a *pawl.InvalidError.
func (p *Policy) Strategy() (s pawl.Strategy, err error) {
	base, err := durationOf("base", p.Base)
	if err != nil {
		return s, err
	}
	switch p.Form {
	case "none":
		s = pawl.None()
	case "fixed":
		s = pawl.Fixed(base)
	case "exponential":
		if p.Multiplier == nil {
			return s, invalid("policy", "it is exponential and has no multiplier")
		}
		s = pawl.Exponential(base, *p.Multiplier)
	default:
		return s, invalid("policy", "%q is none of none, fixed, exponential", truncate(p.Form))
	}
	if p.Cap != nil {
		limit, err := durationOf("cap", *p.Cap)
		if err != nil {
			return s, err
		}
		s = s.Cap(limit)
	}
	if p.Jitter != nil {
		s = s.Jitter(*p.Jitter)
	}
	if p.FullJitter {
		s = s.FullJitter()
	}
	return s, s.Err()
}

func durationOf(what, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, invalid("policy", "its %s %q is no duration of the form 1m30s", what, truncate(text))
	}
	return d, nil
}
