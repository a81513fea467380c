package driver

// Sentinel is an error value of an engine that callers match with [errors.Is], even in another
// process: package admin sends the code, and sentinels with equal codes match. Make one with
// [NewSentinel].
type Sentinel struct{ code, text string }

// NewSentinel returns a sentinel. The code is a lower-case name that no other sentinel of the
// program has, and it never changes. It must not be one of package admin's own codes, such as
// "conflict": package admin does not send such a sentinel.
func NewSentinel(code, text string) error { return &Sentinel{code, text} }

// Error returns the text.
func (s *Sentinel) Error() string { return s.text }

// Code returns the code.
func (s *Sentinel) Code() string { return s.code }

// Is reports whether the target is a sentinel with the same code.
func (s *Sentinel) Is(target error) bool {
	other, ok := target.(*Sentinel)
	return ok && other.code == s.code
}
