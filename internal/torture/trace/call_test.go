package trace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	for _, test := range []struct {
		name, rule, text string
		want             []string // of each moment: begin or end, thread's call, result
	}{
		{
			"one after the other", "a call in one line begins and ends there",
			"7 fsync(3)                = 0\n7 close(3) = 0\n",
			[]string{"begin fsync [3]", "end fsync [3] 0", "begin close [3]", "end close [3] 0"},
		},
		{
			"two threads", "a call is under way until its other half, whatever comes in between",
			"7 fdatasync(5 <unfinished ...>\n8 write(1, \"\\x61\\x0a\", 2) = 2\n7 <... fdatasync resumed>) = 0\n",
			[]string{"begin fdatasync [5]", "begin write [1 a\n 2]", "end write [1 a\n 2] 2", "end fdatasync [5] 0"},
		},
		{
			"an error", "a call that failed says so, and whether it was made to",
			"7 fdatasync(5) = -1 EIO (Input/output error) (INJECTED)\n",
			[]string{"begin fdatasync [5]", "end fdatasync [5] -1 injected"},
		},
		{
			"killed inside", "what became of a call is not known when the process died inside of it",
			"7 fdatasync(5 <unfinished ...>) = ?\n7 +++ killed by SIGKILL +++\n",
			[]string{"begin fdatasync [5]", "end fdatasync [5] unknown"},
		},
		{
			"killed unseen", "a thread that is lost inside of a call leaves it without an end",
			"7 pwrite64(5, \"\\x00\", 1, 4096 <detached ...>\n8 ???( <detached ...>\n",
			[]string{"begin pwrite64 [5 \x00 1 4096]"},
		},
		{
			"killed before it began", "a thread that died before its call could be read leaves no call",
			"7 ???( <unfinished ...>\n7 <... ??? resumed>) = ?\n",
			nil,
		},
		{
			"killed as it returned", "the result of a process that died is not known if it is no error of the system",
			"7 pwrite64(5, \"\\x00\", 1, 4096) = -1 (errno 18446744073709551598)\n",
			[]string{"begin pwrite64 [5 \x00 1 4096]", "end pwrite64 [5 \x00 1 4096] unknown"},
		},
		{
			"a string that is cut off", "a call of which a part is missing says so",
			"7 write(5, \"\\x61\"..., 4) = 4\n",
			[]string{"begin write [5 a 4]", "end write [5 a 4] 4 clipped"},
		},
		{
			"a last line without an end", "what strace had no time to write is no error",
			"7 fsync(3) = 0\n7 wri",
			[]string{"begin fsync [3]", "end fsync [3] 0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			moments, err := parseCalls(strings.NewReader(test.text))
			require.NoError(t, err, test.rule)
			var got []string
			for _, m := range moments {
				got = append(got, m.String())
			}
			require.Equal(t, test.want, got, test.rule)
		})
	}
}

// Input that is no log of strace is an error, and not an empty log.
func TestNoCalls(t *testing.T) {
	for _, text := range []string{"nonsense\n", "7 nonsense\n", "7 write(1, \"a\", 1) = 1\n", "7 fsync(1) is 0\n", "7 <... fsync resumed>) = 0\n"} {
		_, err := parseCalls(strings.NewReader(text))
		require.Error(t, err, text)
	}
}
