package driver

// Parts are what a list reads of each job besides its record.
type Parts uint8

const (
	PartPayload     Parts = 1 << iota
	PartLastFailure       // the newest entry of the history
	PartHistory           // the whole history

	AllParts = PartPayload | PartHistory
)
