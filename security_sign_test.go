package pawl_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
)

// randomSigned is a signed job of which every signed field has some bytes.
func randomSigned(t *testing.T, k *pawl.Keyring, r *rand.Rand) *pawl.Envelope {
	t.Helper()
	text := func(most int) []byte {
		b := make([]byte, 1+r.IntN(most))
		for i := range b {
			b[i] = byte(1 + r.IntN(255)) // a name has no NUL
		}
		return b
	}
	e := &pawl.Envelope{
		Kind: string(text(12)), Queue: string(text(8)), Origin: string(text(8)), Payload: text(60),
		IdempotencyKey: string(text(12)), Created: time.Unix(r.Int64N(1<<34), r.Int64N(1e9)),
	}
	require.NoError(t, k.Sign(e))
	require.NoError(t, k.Verify(e))
	return e
}

// signedFields are those that a signature covers, as bytes, with itself.
var signedFields = map[string]struct {
	get func(*pawl.Envelope) []byte
	set func(*pawl.Envelope, []byte)
}{
	"ID":              {func(e *pawl.Envelope) []byte { return e.ID[:] }, func(e *pawl.Envelope, b []byte) { e.ID = [16]byte(append(b, make([]byte, 16)...)) }},
	"origin":          {func(e *pawl.Envelope) []byte { return []byte(e.Origin) }, func(e *pawl.Envelope, b []byte) { e.Origin = string(b) }},
	"kind":            {func(e *pawl.Envelope) []byte { return []byte(e.Kind) }, func(e *pawl.Envelope, b []byte) { e.Kind = string(b) }},
	"payload":         {func(e *pawl.Envelope) []byte { return e.Payload }, func(e *pawl.Envelope, b []byte) { e.Payload = b }},
	"idempotency key": {func(e *pawl.Envelope) []byte { return []byte(e.IdempotencyKey) }, func(e *pawl.Envelope, b []byte) { e.IdempotencyKey = string(b) }},
	"key ID":          {func(e *pawl.Envelope) []byte { return []byte(e.KeyID) }, func(e *pawl.Envelope, b []byte) { e.KeyID = string(b) }},
	"signature":       {func(e *pawl.Envelope) []byte { return e.Signature }, func(e *pawl.Envelope, b []byte) { e.Signature = b }},
	"created": {
		func(e *pawl.Envelope) []byte {
			b := binary.BigEndian.AppendUint64(nil, uint64(e.Created.Unix()))
			return binary.BigEndian.AppendUint32(b, uint32(e.Created.Nanosecond()))
		},
		func(e *pawl.Envelope, b []byte) {
			b = append(b, make([]byte, 12)...)
			e.Created = time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:])))
		},
	},
}

// Rule: of a signed job no bit of what is signed can be changed, nothing of it cut, and
// nothing put in the place of another job's.
func TestEveryChangeOfASignedJobIsRejected(t *testing.T) {
	jobs := race.Fewer(100)
	k, r := keyring(t, "new"), rand.New(rand.NewPCG(4, 4))
	other := randomSigned(t, keyring(t, "old"), r)
	tried := 0
	reject := func(e *pawl.Envelope, format string, args ...any) {
		tried++
		if err := k.Verify(e); err == nil {
			t.Fatalf("verified after %s", fmt.Sprintf(format, args...))
		} else {
			require.ErrorIs(t, err, pawl.ErrSignature)
		}
	}
	for range jobs {
		e := randomSigned(t, k, r)
		for name, field := range signedFields {
			whole := field.get(e)
			for bit := range 8 * len(whole) {
				c, b := *e, bytes.Clone(whole)
				b[bit/8] ^= 1 << (bit % 8)
				if field.set(&c, b); bytes.Equal(field.get(&c), whole) {
					t.Fatalf("bit %d of %s was not changed", bit, name)
				}
				reject(&c, "flipping bit %d of %s", bit, name)
			}
			for n := range len(whole) {
				c := *e
				if field.set(&c, bytes.Clone(whole[:n])); bytes.Equal(field.get(&c), whole) {
					continue // what was cut were zeroes of an ID or a time
				}
				reject(&c, "cutting %s to %d bytes", name, n)
			}
			c := *e
			field.set(&c, bytes.Clone(field.get(other)))
			reject(&c, "taking %s of another job", name)
		}
		for name, change := range map[string]func(*pawl.Envelope){
			"no signature":                func(e *pawl.Envelope) { e.Signature = nil },
			"an empty signature":          func(e *pawl.Envelope) { e.Signature = []byte{} },
			"no key ID":                   func(e *pawl.Envelope) { e.KeyID = "" },
			"neither":                     func(e *pawl.Envelope) { e.KeyID, e.Signature = "", nil },
			"zeroes":                      func(e *pawl.Envelope) { e.Signature = make([]byte, 32) },
			"key and signature of others": func(e *pawl.Envelope) { e.KeyID, e.Signature = other.KeyID, other.Signature },
		} {
			c := *e
			change(&c)
			reject(&c, "%s", name)
		}
		require.NoError(t, k.Verify(e), "the job itself is as it was")
	}
	require.Greater(t, tried, 100*jobs)
}

// Rule: whoever may write the file, and so the checksums too, changes no signed field of a
// job that verifies.
func TestNoBitOfASignedRecordCanBeForged(t *testing.T) {
	k, r := keyring(t, "new"), rand.New(rand.NewPCG(5, 5))
	verified := 0
	for range 8 {
		e := randomSigned(t, k, r)
		whole := driver.AppendRecord(nil, e, 0)
		for bit := range 8 * (len(whole) - 5) {
			record := bytes.Clone(whole)
			record[5+bit/8] ^= 1 << (bit % 8)
			binary.LittleEndian.PutUint32(record[1:], crc32.Checksum(record[5:], crc32.MakeTable(crc32.Castagnoli)))
			forged, _, err := driver.ParseRecord(record)
			if err != nil || k.Verify(forged) != nil {
				continue
			}
			verified++ // it is of a field that is not signed
			for name, field := range signedFields {
				require.Equal(t, field.get(e), field.get(forged), "%s, bit %d", name, bit)
			}
		}
	}
	require.Positive(t, verified, "the queue, the priority and the schedule are not signed")
}

// Rule: signatures are compared in a time that does not tell how much of one is right. No
// test can see that on a machine that does other things as well, so this reads the source.
func TestSignaturesAreComparedInConstantTime(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "sign.go", nil, 0)
	require.NoError(t, err)
	calls := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok {
				calls[pkg.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	require.True(t, calls["hmac.Equal"])
	for _, name := range []string{"bytes.Equal", "bytes.Compare", "reflect.DeepEqual", "slices.Equal"} {
		require.False(t, calls[name], name)
	}
}
