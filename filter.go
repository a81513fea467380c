package pawl

// Filter chooses jobs to look at. The zero value chooses all.
type Filter struct {
	State State  // "" means any
	Queue string // "" means any
	Kind  string // "" means any
}
