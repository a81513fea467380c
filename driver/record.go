package driver

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/bridge"
)

// root has what only package pawl can do, with fields that it does not export.
var root = bridge.Root.(bridge.Functions[pawl.Envelope, pawl.Lease, pawl.Policy, pawl.Queue])

// AppendRecord appends a job to dst in the form in which package bolt stores it. If apart is not
// 0, the payload is left out, and apart is its size in bytes. A record has neither what inspection
// fills in nor what is for Enqueue only.
func AppendRecord(dst []byte, e *pawl.Envelope, apart int) []byte {
	return root.AppendRecord(dst, e, apart)
}

// ParseRecord reads what [AppendRecord] wrote. Its errors match [pawl.ErrCorrupt]. The payload of
// the result is a part of b, which must not change afterwards. Apart is the size of a payload
// that the record leaves out, or 0 if it has the payload.
func ParseRecord(b []byte) (e *pawl.Envelope, apart int, err error) { return root.ParseRecord(b) }

// CheckRecord checks the version and the checksum of a record without decoding it. Its errors
// match [pawl.ErrCorrupt].
func CheckRecord(b []byte) error { return root.CheckRecord(b) }

// EncodePayload encodes a value as jobs carry their arguments, for a package that stores values
// beside jobs. [pawl.Define] says which fields it writes. A value that cannot be encoded gives
// [pawl.ErrPayloadEncoding].
func EncodePayload(v any) ([]byte, error) { return root.EncodePayload(v) }

// DecodePayload reads what [EncodePayload] wrote into the value that v points to. The bytes may
// come from anywhere. It returns [pawl.ErrPayloadEncoding] if they do not fit. They do not fit
// either if the type of v lacks a field or cannot hold a value, such as 300 in an int8.
func DecodePayload(b []byte, v any) error { return root.DecodePayload(b, v, false) }

// DecodeKnown is [DecodePayload], except that it skips fields that the type of v lacks.
func DecodeKnown(b []byte, v any) error { return root.DecodePayload(b, v, true) }
