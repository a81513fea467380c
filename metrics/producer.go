package metrics

import (
	"context"
	"slices"
)

// Producer has families of its own. A *worker.Worker, a *workflow.Reader, and a *schedule.Reader are
// producers. An app may have others. Families with the same name are merged. Samples with the same
// labels are added up.
type Producer interface {
	// Families returns the present figures. It may be called from any goroutine.
	Families(ctx context.Context) ([]Family, error)
}

// produce reads the families of producers.
func produce(ctx context.Context, producers []Producer) (all []Family, err error) {
	at := make(map[string]int) // of all
	for _, p := range producers {
		families, err := p.Families(ctx)
		if err != nil {
			return nil, err
		}
		for _, f := range families {
			i, known := at[f.Name]
			if !known {
				at[f.Name] = len(all)
				all = append(all, f)
				continue
			}
			for _, s := range f.Samples {
				all[i].merge(s)
			}
		}
	}
	return all, nil
}

// merge adds a sample to the one with the same labels.
func (f *Family) merge(s Sample) {
	for i := range f.Samples {
		if same := &f.Samples[i]; s.Histogram == nil && same.Histogram == nil && slices.Equal(same.Values, s.Values) {
			same.Value += s.Value
			return
		}
	}
	f.Samples = append(f.Samples, s)
}

// NewFamily returns a family without samples, for a [Producer]. Its kind is "gauge" or "counter".
func NewFamily(name, kind, help string, labels ...string) Family {
	return Family{Name: name, Help: help, Type: kind, Labels: labels}
}

// Add adds a sample. Labels are the values in the order of the family's labels. Invalid UTF-8 in them is replaced.
func (f *Family) Add(value float64, labels ...string) {
	values := make([]string, len(labels))
	for i, one := range labels {
		values[i] = label(one)
	}
	f.Samples = append(f.Samples, Sample{Values: values, Value: value})
}
