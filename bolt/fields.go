package bolt

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// A row ends with its optional fields. Each field is a tag, the length of the value, and the value.
// A row without fields needs no bytes for them, and a new kind of field does not move the others.

// appendField appends a field. Its value has at most 255 bytes.
func appendField(b []byte, tag byte, value []byte) []byte {
	return append(append(b, tag, byte(len(value))), value...)
}

// eachField calls read for each field of a row. Read reports whether it knows the field.
func eachField(b []byte, read func(tag byte, value []byte) (known bool)) error {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return fmt.Errorf("%w: a field of a row is cut off", pawl.ErrCorrupt)
		}
		value := b[2 : 2+int(b[1])]
		if !read(b[0], value) {
			return fmt.Errorf("%w: a row has a field %d of %d bytes, which this build does not know", pawl.ErrCorrupt, b[0], len(value))
		}
		b = b[2+len(value):]
	}
	return nil
}
