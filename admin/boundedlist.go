package admin

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gopawl/pawl"
)

// list is a list in JSON of at most [pawl.MaxBatchJobs] elements. It is read element by
// element, so that a small body cannot ask for memory by the number of its commas.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(b []byte) error {
	*l = nil
	if string(b) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return invalid("body", "it has something else where a list is due")
	}
	for dec.More() {
		if len(*l) == pawl.MaxBatchJobs {
			return fmt.Errorf("%w: a list of more than %d elements", pawl.ErrBatchTooLarge, pawl.MaxBatchJobs)
		}
		var one T
		if err := dec.Decode(&one); err != nil {
			return fmt.Errorf("element %d: %w", len(*l), err)
		}
		*l = append(*l, one)
	}
	return nil
}
