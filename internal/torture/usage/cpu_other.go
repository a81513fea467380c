//go:build !unix

package usage

import "time"

var processBegan = time.Now()

// CPU returns the age of this process: this system does not report CPU time.
func CPU() time.Duration { return time.Since(processBegan) }
