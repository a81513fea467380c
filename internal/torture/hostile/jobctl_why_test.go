package hostile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: what jobctl says of a job of a damaged file may lack obstacles and jobs that run, and has nothing else.
func TestWrongObstacleIsSeen(t *testing.T) {
	line := func(obstacles string) string { return `{"id":"1","obstacles":[` + obstacles + `]}` + "\n" }
	const (
		key  = `{"what":"key","key":"a","until_at":null,"running":2,"limit":2,"holders":["2","3"]}`
		rate = `{"what":"key_rate","key":"a","until_at":"2030-01-01T00:00:00Z","holders":[]}`
	)
	sound := map[string]bool{line(key + "," + rate): true, `{"id":"2","obstacles":[{"what":"paused"}]}` + "\n": true}
	for text, want := range map[string]bool{
		line(key + "," + rate): true,
		line(key):              true,
		line(""):               true,
		line(`{"what":"key","key":"a","until_at":null,"running":1,"limit":2,"holders":["3"]}`):                       true,
		line(`{"what":"key_rate","key":"a","until_at":"2026-01-01T00:00:00Z","holders":[]}`):                         true,
		line(`{"what":"key","key":"a","until_at":null,"running":3,"limit":2,"holders":["2","3"]}`):                   false,
		line(`{"what":"key","key":"a","until_at":null,"running":2,"limit":2,"holders":["4"]}`):                       false,
		line(`{"what":"key","key":"a","until_at":null,"running":2,"limit":3,"holders":["2","3"]}`):                   false,
		line(`{"what":"key","key":"b","until_at":null,"running":2,"limit":2,"holders":["2","3"]}`):                   false,
		line(`{"what":"key","key":"a","until_at":"2026-01-01T00:00:00Z","running":2,"limit":2,"holders":["2","3"]}`): false,
		line(`{"what":"paused"}`):     false,
		`{"id":"3","obstacles":[]}`:   false,
		`{"id":"1","counts":[]}`:      false,
		`{"id":"1","obstacles":"no"}`: false,
	} {
		require.Equal(t, want, partOfWhy(text, sound), text)
	}
}
