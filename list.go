package pawl

// MaxListed is the most jobs that one call of a queue's List returns.
const MaxListed = 10_000

// Listing is a page of a list of jobs.
type Listing struct {
	Jobs []Listed

	// Next is the cursor for the next page, "" at the end. It is opaque and safe in a URL and
	// in a shell: it consists of letters, digits, - and _, and does not begin with -.
	Next string
}

// Listed is one job of a list.
type Listed struct {
	Job *Envelope // has only the ID if Err is not nil
	Err error     // matches [ErrCorrupt]: the job is unreadable
}
