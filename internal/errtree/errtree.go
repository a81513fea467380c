// Package errtree searches the errors that an error wraps.
package errtree

// Find returns the first T in the tree of err, as errors.As finds it. It needs no memory for the
// result, which matters where each error of a failed attempt is searched several times.
func Find[T any](err error) (found T, ok bool) {
	for err != nil {
		if found, ok = err.(T); ok {
			return found, true
		}
		if other, converts := err.(interface{ As(any) bool }); converts {
			var as T // the only one on the heap
			if other.As(&as) {
				return as, true
			}
		}
		switch wraps := err.(type) {
		case interface{ Unwrap() error }:
			err = wraps.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range wraps.Unwrap() {
				if found, ok = Find[T](one); ok {
					return found, true
				}
			}
			return found, false
		default:
			return found, false
		}
	}
	return found, false
}
