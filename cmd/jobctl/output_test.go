package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: colors appear only on a terminal, and not with NO_COLOR, a dumb terminal or the flag;
// --color always overrides all of them.
func TestColors(t *testing.T) {
	for _, c := range []struct {
		flag   string
		screen bool
		env    map[string]string
		want   bool
	}{
		{"auto", true, nil, true},
		{"auto", false, nil, false},
		{"auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"auto", true, map[string]string{"TERM": "dumb"}, false},
		{"never", true, nil, false},
		{"always", false, map[string]string{"NO_COLOR": "1"}, true},
	} {
		a := &app{screen: c.screen, flags: shared{color: c.flag}, env: func(name string) string { return c.env[name] }}
		require.Equal(t, c.want, a.colors(), "%+v", c)
	}
}

// Rule: colors change no width.
func TestTableWithColors(t *testing.T) {
	lines := map[bool][]string{}
	for _, paint := range []bool{false, true} {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		table := table{out: w, paint: paint, columns: []column{{title: "STATE", color: stateColors.of}, {title: "N", right: true, color: colorOfCount}, {title: "LAST"}}}
		table.add("dead", "12", "x")
		table.add("completed", "0", "")
		table.flush()
		require.NoError(t, w.Flush())
		lines[paint] = strings.Split(out.String(), "\n")
	}
	require.Equal(t, []string{"STATE       N  LAST", "dead       12  x", "completed   0", ""}, lines[false])
	require.Equal(t, "\x1b[31mdead\x1b[0m       \x1b[31m12\x1b[0m  x", lines[true][1])
	strip := strings.NewReplacer(red, "", bold, "", reset, "")
	require.Equal(t, strings.Join(lines[false], "\n"), strip.Replace(strings.Join(lines[true], "\n")))
}

// Rule: characters that a terminal obeys are escaped in a stream of JSON too, wherever writes
// cut it, and a program reads the same.
func TestHarmlessJSON(t *testing.T) {
	value := []string{"\u009b31m", "a\u202eb", "\U000e0041", "é漢🎉", "\x7f"}
	plain, err := json.Marshal(value)
	require.NoError(t, err)
	for _, step := range []int{1, 2, 3, 1000} {
		var out bytes.Buffer
		w := &harmlessJSON{to: &out}
		for rest := append(plain, '\n'); len(rest) > 0; {
			n := min(step, len(rest))
			_, err := w.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		requireHarmless(t, "the writer", out.String())
		var back []string
		require.NoError(t, json.Unmarshal(out.Bytes(), &back))
		require.Equal(t, value, back)
	}
}
