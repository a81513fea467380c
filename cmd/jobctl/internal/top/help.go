package top

// helpLines are what the question mark shows.
var helpLines = []string{
	"↑ ↓ k j      one row up or down",
	"PgUp PgDn    one page; also space and b",
	"Home End     the first row, the last one of the page; also g and G",
	"Tab 1 2 3 4  the panes: queues, running, waiting, dead",
	"Enter        of a queue: its jobs; of a job: everything about it",
	"Esc          back; takes the filter away",
	"/            filter: words that queue, kind, ID or error have in them,",
	"             queue=NAME, kind=NAME; what has spaces in double quotes",
	"r            read again",
	"q ctrl-C     quit",
	"",
	"Each of these asks first, and only y is a yes:",
	"P            pause the queue, or resume it",
	"C            cancel a job that waits or runs",
	"N            run a delayed or parked job now",
	"R            retry a dead letter",
	"D            delete a dead letter for good",
	"",
	"RUNS/S and FAIL/S are means of the last five readings. Waiting jobs",
	"are shown in this order: parked, delayed, ready.",
}
