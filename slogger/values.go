package slogger

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/hashicorp/go-hclog"
)

// stackKey is the key that hclog gives to a stack trace at the end of a line.
const stackKey = "stacktrace"

// pairs returns args as keys, which are strings, and values in turn, an even number.
func pairs(args []any) []any {
	even := make([]any, 0, len(args)+1)
	for i := 0; i+1 < len(args); i += 2 {
		key, ok := args[i].(string)
		if !ok {
			key = fmt.Sprint(args[i])
		}
		even = append(even, key, args[i+1])
	}
	if len(args)%2 == 0 {
		return even
	}
	key, last := hclog.MissingKey, args[len(args)-1]
	if _, ok := last.(hclog.CapturedStacktrace); ok {
		key = stackKey
	}
	return append(even, key, last)
}

// attrs turns what pairs returned into attributes.
func attrs(pairs []any) []slog.Attr {
	all := make([]slog.Attr, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, slog.Attr{Key: pairs[i].(string), Value: value(pairs[i+1])})
	}
	return all
}

// value turns the types that only hclog knows how to print into text.
func value(v any) slog.Value {
	switch v := v.(type) {
	case hclog.Format:
		return slog.StringValue(format(v))
	case hclog.Hex:
		return slog.StringValue("0x" + strconv.FormatUint(uint64(v), 16))
	case hclog.Octal:
		return slog.StringValue("0" + strconv.FormatUint(uint64(v), 8))
	case hclog.Binary:
		return slog.StringValue("0b" + strconv.FormatUint(uint64(v), 2))
	case hclog.Quote:
		return slog.StringValue(string(v))
	case hclog.CapturedStacktrace:
		return slog.StringValue(string(v))
	}
	return slog.AnyValue(v)
}

// format is the text of a Format; where its first part is not the format that it
// should be, it is the parts as they are.
func format(f hclog.Format) string {
	if len(f) > 0 {
		if layout, ok := f[0].(string); ok {
			return fmt.Sprintf(layout, f[1:]...)
		}
	}
	return fmt.Sprint(f...)
}
