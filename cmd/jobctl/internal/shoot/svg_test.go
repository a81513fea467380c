package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each character is in its column, in its colors.
func TestPicture(t *testing.T) {
	cases := []struct {
		rule   string
		screen string
		has    []string
		lacks  []string
	}{
		{"text is text", "ready 3", []string{`x="16.0" y="29.5" textLength="58.8" lengthAdjust="spacingAndGlyphs" fill="#d7dce5">ready 3</text>`}, nil},
		{"a colour ends where it ends", "a\x1b[31mb\x1b[0mc", []string{`fill="#d7dce5">a<`, `x="24.4"`, `fill="#ef6b73">b<`, `fill="#d7dce5">c<`}, nil},
		{"and goes on over the end of a line", "\x1b[31ma\nb", []string{`fill="#ef6b73">a<`, `y="47.5" textLength="8.4" lengthAdjust="spacingAndGlyphs" fill="#ef6b73">b<`}, nil},
		{"a colour of its own again", "\x1b[31;1ma\x1b[39;22mb", []string{`fill="#ef6b73" font-weight="bold">a<`, `fill="#d7dce5">b<`}, nil},
		{"bright, and of 256", "\x1b[92ma\x1b[38;5;9mb\x1b[38;5;196mc\x1b[38;5;244md", []string{"#a9e18c", "#ff8f96", "#ff0000", "#808080"}, nil},
		{"reverse swaps them", "\x1b[7ma ", []string{`width="16.8" height="18" fill="#d7dce5"/>`, `fill="#1b1f27">a<`}, nil},
		{"faint is nearer to the ground", "\x1b[2ma", []string{`fill="#8b9099"`}, nil},
		{"wide characters have two columns", "データx", []string{`textLength="58.8"`}, nil},
		{"markup is text", "<a&b>", []string{"&lt;a&amp;b&gt;"}, []string{"<a&"}},
		{"a sparkline is drawn", "▁█", []string{`x="16.00" y="31.75" width="8.40" height="2.25"`, `x="24.40" y="16.00" width="8.40" height="18.00"`}, []string{"▁", "█"}},
		{"so is a bar", "▍░", []string{`x="16.00" y="16.00" width="3.15" height="18.00"`, `opacity="0.35"`}, []string{"▍", "░"}},
		{"empty lines at the end are cut", "a\n\n\n", []string{`height="50"`}, nil},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got := string(picture("t", c.screen, 1))
			for _, text := range c.has {
				require.Contains(t, got, text)
			}
			for _, text := range c.lacks {
				require.NotContains(t, got, text)
			}
			decoder := xml.NewDecoder(strings.NewReader(got))
			for {
				_, err := decoder.Token()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
			}
		})
	}
}
