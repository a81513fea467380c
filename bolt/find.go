package bolt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// FindIDs returns up to most IDs of jobs that begin or end with part, which is at least four hexadecimal digits, with
// or without dashes. It returns [pawl.ErrInvalid] for any other part. To find the end of an ID, it compares at most
// [driver.MaxSearched] IDs, after a cursor: "" for the beginning, or the next of an earlier call. Next is "" at the
// end, and when most IDs were found.
func (r *reader) FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error) {
	search, err := driver.NewSearch(part, after, most)
	if err != nil {
		return nil, "", err
	}
	err = r.view(ctx, func(s *store) error {
		c := s.jobs.Cursor()
		least, greatest, room := search.Range()
		for k, _ := c.Seek(least[:]); k != nil && room > 0 && bytes.Compare(k, greatest[:]) <= 0; k, _ = c.Next() {
			if len(k) == len(least) {
				search.IDs = append(search.IDs, pawl.ID(k))
				room--
			}
		}
		last := search.After
		for k, _ := c.Seek(last[:]); k != nil && search.Left() > 0; k, _ = c.Next() {
			if len(k) == len(last) && !bytes.Equal(k, last[:]) {
				search.Add(pawl.ID(k))
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("find IDs: %w", err)
	}
	return search.IDs, search.Next(), nil
}
