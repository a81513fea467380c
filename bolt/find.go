package bolt

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// leastDigits is the shortest allowed part of an ID.
const leastDigits = 4

// FindIDs returns up to most IDs of jobs that begin or end with part: hexadecimal digits, with
// or without dashes. It reads only the keys of all jobs.
func (r *reader) FindIDs(ctx context.Context, part string, most int) (ids []pawl.ID, err error) {
	digits := strings.ToLower(strings.ReplaceAll(part, "-", ""))
	if strings.Trim(digits, "0123456789abcdef") != "" || len(digits) < leastDigits {
		return nil, &pawl.InvalidError{Field: "id", Reason: fmt.Sprintf("%q is not the beginning or the end of an ID, with %d hexadecimal digits or more", ellipsis.Truncate(part, 64), leastDigits)}
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
