package bolt

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// FindIDs returns up to most IDs of jobs that begin or end with part: hexadecimal digits, with
// or without dashes. It reads only the keys of all jobs.
func (r *reader) FindIDs(ctx context.Context, part string, most int) (ids []pawl.ID, err error) {
	digits, err := driver.PartOfID(part)
	if err != nil {
		return nil, err
	}
	err = r.view(ctx, func(s *store) error {
		c := s.jobs.Cursor()
		n := 0
		for k, _ := c.First(); k != nil && len(ids) < most; k, _ = c.Next() {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			var id pawl.ID
			if len(k) != len(id) {
				continue
			}
			var text [2 * len(pawl.ID{})]byte
			hex.Encode(text[:], k)
			if strings.HasPrefix(string(text[:]), digits) || strings.HasSuffix(string(text[:]), digits) {
				copy(id[:], k)
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find IDs: %w", err)
	}
	return ids, nil
}
