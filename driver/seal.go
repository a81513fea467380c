package driver

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/gopawl/pawl"
)

// RowForm is the first byte of the values that [Seal] makes.
const RowForm = 1

// Seal makes the value of a row from its content: the version of its form, the content, and a
// CRC-32C over the name of the table, the key, and these two. If the pages of a file are mixed up,
// rows of one table appear in another whose keys look alike.
func Seal(t *Table, key, content []byte) []byte {
	value := append(make([]byte, 0, 1+len(content)+4), RowForm)
	value = append(value, content...)
	return binary.BigEndian.AppendUint32(value, sealOf(t, key, value))
}

// Unseal returns the content of a value that [Seal] made, without copying. The error matches
// [pawl.ErrCorrupt] or [pawl.ErrNewerFormat].
func Unseal(t *Table, key, value []byte) (content []byte, err error) {
	switch n := len(value) - 4; {
	case n < 1 || binary.BigEndian.Uint32(value[n:]) != sealOf(t, key, value[:n]):
		err = fmt.Errorf("%w: the checksum of a row is wrong", pawl.ErrCorrupt)
	case value[0] > RowForm:
		err = fmt.Errorf("%w: a row has form %d, this build reads up to %d", pawl.ErrNewerFormat, value[0], RowForm)
	case value[0] < RowForm:
		err = fmt.Errorf("%w: a row has form %d, which never existed", pawl.ErrCorrupt, value[0])
	default:
		return value[1:n], nil
	}
	return nil, fmt.Errorf("table %s of %s, key %x: %w", t, t.space.name, key, err)
}

func sealOf(t *Table, key, value []byte) uint32 {
	sum := crc32.Checksum(t.name, castagnoli)
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}
