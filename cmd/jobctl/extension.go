package main

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
)

// extension writes n bytes that follow a byte for their type.
func (m *messagePack) extension(n uint64) error {
	b, err := m.take(n + 1)
	if err != nil {
		return err
	}
	kind, b := int8(b[0]), b[1:]
	if t, ok := timestamp(b); ok && kind == -1 {
		m.text(stamp(t))
		return nil
	}
	m.raw(`{"extension":` + strconv.Itoa(int(kind)) + `,"data":`)
	m.text(base64.StdEncoding.EncodeToString(b))
	m.raw("}")
	return nil
}

// timestamp reads the extension of type -1 in one of its three lengths.
func timestamp(b []byte) (time.Time, bool) {
	switch len(b) {
	case 4:
		return time.Unix(int64(binary.BigEndian.Uint32(b)), 0), true
	case 8:
		both := binary.BigEndian.Uint64(b)
		return time.Unix(int64(both&(1<<34-1)), int64(both>>34)), true
	case 12:
		return time.Unix(int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint32(b))), true
	}
	return time.Time{}, false
}
