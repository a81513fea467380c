package pawl_test

import (
	"bytes"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// bombs are bytes for which a decoder that trusts them takes gigabytes, or a stack without
// an end.
func bombs() map[string][]byte {
	in := func(head string, tail ...byte) []byte { return append([]byte(head), tail...) }
	most := []byte{0xff, 0xff, 0xff, 0xff}
	return map[string][]byte{
		"list of 4 G values":             in("\xdd", most...),
		"map of 4 G pairs":               in("\xdf", most...),
		"map of 2 G pairs":               in("\xdf\x80\x00\x00\x00"),
		"text of 4 GiB":                  in("\xdb", most...),
		"bytes of 4 GiB":                 in("\xc6", most...),
		"extension of 4 GiB":             in("\xc9\xff\xff\xff\xff\x05"),
		"time of 4 GiB":                  in("\xc9\xff\xff\xff\xff\xff"),
		"list of 65535 values":           in("\xdc\xff\xff"),
		"map of 65535 pairs":             in("\xde\xff\xff"),
		"bomb in a list":                 in("\x92\xc0\xdd", most...),
		"bomb in a map":                  in("\x81\xa1M\xdf", most...),
		"bomb as a key":                  in("\x81\xdd", most...),
		"bomb in an extension":           in("\xc7\x08\x05\x81\xa0\xdd\xff\xff\xff\xff\x00"),
		"bomb in a time":                 in("\xd7\xff\xdf\xff\xff\xff\xff\x00\x00\x00"),
		"extension that heads a map":     in("\x81\xa1M\xc7\x07\x05\x81\xa0\xdd\xff\xff\xff\xff"),
		"5 MB of lists in lists":         bytes.Repeat([]byte{0x91}, 5<<20),
		"5 MB of maps in maps":           bytes.Repeat([]byte{0x81}, 5<<20),
		"5 MB of maps in values":         bytes.Repeat([]byte{0x81, 0xa0}, 5<<19),
		"4 G values behind 1 MB of nils": append(in("\xdd", most...), bytes.Repeat([]byte{0xc0}, 1<<20)...),
		"4 G pairs behind 1 MB of nils":  append(in("\xdf", most...), bytes.Repeat([]byte{0xc0}, 1<<20)...),
	}
}

// asJob decodes a payload as the arguments of a kind.
func asJob[T any](b []byte) error {
	_, err := pawl.Define[T]("k").Job(&pawl.Envelope{Kind: "k", Payload: b})
	return err
}

type everything struct {
	M map[string]any
	L []any
	S string
	B []byte
	T time.Time
	P *everything
	I any
	A [4]int
	E []struct{ K map[string]string }
	N string `msgpack:",intern"`
}

// decodings are all ways by which the bytes of a payload come to a handler.
var decodings = map[string]func([]byte) error{
	"any":               asJob[any],
	"map":               asJob[map[string]any],
	"map of maps":       asJob[map[string]map[string][]any],
	"map by numbers":    asJob[map[int]string],
	"map by anything":   asJob[map[any]any],
	"map of texts":      asJob[map[string]string],
	"list":              asJob[[]any],
	"list of texts":     asJob[[]string],
	"list of bytes":     asJob[[][]byte],
	"list of structs":   asJob[[]everything],
	"array":             asJob[[1 << 10]int],
	"struct":            asJob[everything],
	"pointer to struct": asJob[*everything],
	"text":              asJob[string],
	"bytes":             asJob[[]byte],
	"time":              asJob[time.Time],
	"number":            asJob[int64],
	"raw":               asJob[msgpack.RawMessage],
}

// allocated is how many bytes fn allocates in all, the least of a few runs: the runtime
// and the test itself allocate now and then.
func allocated(fn func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fn()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// wellFormedTo has what is no bomb to those who do not look into extensions.
var wellFormedTo = map[string]map[string]bool{
	"extension that heads a map": {"raw": true}, "bomb in an extension": {"raw": true},
	"bomb in a time": {"raw": true, "any": true, "time": true},
}

// Rule: a bomb is refused for less than 64 KiB and 8 times its own size, by whatever
// arguments a handler asks for.
func TestBombIsRefusedAsAPayload(t *testing.T) {
	for name, b := range bombs() {
		for into, decode := range decodings {
			used := allocated(func() {
				if err := decode(b); err != nil || !wellFormedTo[name][into] {
					require.ErrorIs(t, err, pawl.ErrPayloadEncoding, "%s into %s", name, into)
				}
			})
			require.LessOrEqual(t, used, uint64(64<<10+8*len(b)), "%s into %s", name, into)
		}
	}
}

// Rule: the same in any field of a record whose checksum is right.
func TestBombIsRefusedInARecord(t *testing.T) {
	for name, b := range bombs() {
		records := map[string][]byte{"as all of it": seal(b)}
		for at := range fieldsInAll {
			head, tail := body(t, fields()[:at]), body(t, fields()[at+1:])
			whole := append([]byte{0xdc, 0, fieldsInAll}, head[listHead(at):]...)
			whole = append(append(whole, b...), tail[listHead(fieldsInAll-at-1):]...)
			records[ellipsis.Truncate(string(rune('a'+at)), 8)] = seal(whole)
		}
		for field, record := range records {
			if len(record) > 1<<20 && field != "as all of it" && field != "a" {
				continue // the same again would take long
			}
			used := allocated(func() {
				_, _, err := driver.ParseRecord(record)
				require.ErrorIs(t, err, pawl.ErrCorrupt, "%s in field %s", name, field)
			})
			require.LessOrEqual(t, used, uint64(64<<10+8*len(record)), "%s in field %s", name, field)
		}
	}
}

// listHead is how many bytes MessagePack needs to say how long a list of n is.
func listHead(n int) int {
	if n < 16 {
		return 1
	}
	return 3
}

// Rule: values nest up to 32 deep, in arguments as in records.
func TestDepthOfPayloads(t *testing.T) {
	for name, level := range map[string]string{"lists": "\x91", "maps": "\x81\xa0", "keys": "\x81"} {
		at := func(depth int) []byte {
			b := bytes.Repeat([]byte(level), depth)
			b = append(b, 0xc0)
			if name == "keys" {
				b = append(b, bytes.Repeat([]byte{0xc0}, depth)...)
			}
			return b
		}
		require.ErrorContains(t, asJob[any](at(33)), "nested deeper than 32", name)
		if name != "keys" { // a map is no key of a Go map
			require.NoError(t, asJob[any](at(32)), name)
		}
	}
}

// Rule: what well-formed bytes become in memory is a bounded multiple of them. It is not
// the factor of bombs: a byte can stand for a whole element of a list, which is as large as
// the handler's own type has it, and lists and maps grow by copying.
func TestWellFormedPayloadIsBounded(t *testing.T) {
	const size = 1 << 15
	list := func(element string, n int) []byte {
		return append([]byte{0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, bytes.Repeat([]byte(element), n)...)
	}
	for name, b := range map[string][]byte{
		"nils":          list("\xc0", size),
		"numbers":       list("\x01", size),
		"empty texts":   list("\xa0", size),
		"empty lists":   list("\x90", size),
		"empty maps":    list("\x80", size),
		"short texts":   list("\xa1x", size/2),
		"maps of one":   list("\x81\xa1k\xc0", size/4),
		"one long text": append([]byte{0xdb, 0, 0, size >> 8, 0}, bytes.Repeat([]byte("x"), size)...),
	} {
		for into, decode := range decodings {
			used := allocated(func() { _ = decode(b) })
			most := uint64(wellFormed)
			if into == "list of structs" {
				most += uint64(2 * unsafe.Sizeof(everything{}))
			}
			require.LessOrEqual(t, used/uint64(len(b)), most, "%s into %s", name, into)
		}
	}
}

// wellFormed is how many times the size of a well-formed payload its arguments may take in
// all, where the handler asks for no structs.
const wellFormed = 128
