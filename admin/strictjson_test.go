package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrictJSON(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	elements := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"n%d":0,`, i)
		}
		return "{" + b.String() + `"last":0}`
	}
	for _, test := range []struct{ rule, text, refused string }{
		{"one value is fine", `{"a":[1,{"b":null}],"c":"d"}`, ""},
		{"the same name in two objects is fine", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`, ""},
		{"a value that is a name elsewhere is fine", `{"a":"b","b":"b","c":["b","b"]}`, ""},
		{"what looks like JSON within a text is text", `{"a":"{\"a\":1,\"a\":[[[\\","b":"\\\\"}`, ""},
		{"white space is fine", "{ \"a\" :\t1 ,\r\"b\" : 2 }\r", ""},
		{"names are compared as they are, not as they are written", `{"ab":1,"\u0061b":2}`, `name "ab" twice`},
		{"a name twice, with white space", `{"a":1, "a"	:2}`, `name "a" twice`},
		{"a name twice in a field of a field", `{"job":{"headers":{"x":1,"y":2,"x":3}}}`, `name "x" twice`},
		{"a name twice in an element of a list", `{"job":{"history":[{"at":1},{"at":1,"at":1}]}}`, `name "at" twice`},
		{"a name twice among many", names(200)[:len(names(200))-1] + `,"n7":0}`, `name "n7" twice`},
		{"a name twice at the end of many", names(200)[:len(names(200))-1] + `,"n190":0}`, `name "n190" twice`},
		{"nothing is not JSON", ``, "not JSON: unexpected end"},
		{"white space is not JSON", "  ", "not JSON: unexpected end"},
		{"a value that was cut", `{"a":`, "not JSON: unexpected end"},
		{"two values", `{} {}`, "not JSON: invalid character"},
		{"a control byte in a text", "{\"a\":\"\x01\"}", "not JSON: invalid character"},
		{"a text that is not UTF-8", "{\"a\":\"\xff\"}", "not UTF-8"},
		{"nesting as deep as may be", nested(maxNesting), ""},
		{"nesting too deep", nested(maxNesting + 1), "more than 64 deep"},
		{"nesting of a bomb", strings.Repeat(`[`, 1<<20), "not JSON"},
		{"nesting of a bomb that is closed", nested(1 << 20), "exceeded max depth"},
		{"a list as long as may be", elements(lineElements), ""},
		{"a list that is too long", elements(lineElements + 1), "more than 4096 elements"},
		{"a list that is too long, as a field of a field", `{"job":{"history":` + elements(lineElements+1) + `}}`, "more than 4096 elements"},
		{"an object that is too large", names(lineElements), "more than 4096 elements"},
		{"values of payloads are bounded elsewhere", `{"job":{"payload":{"value":` + elements(lineElements+1) + `}}}`, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			err := strictJSON([]byte(test.text), lineElements, fieldLevels)
			if test.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.refused)
		})
	}
}
