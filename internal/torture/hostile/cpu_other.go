//go:build !unix

package hostile

import "time"

var processBegan = time.Now()

// processorTime returns the age of this process: this system does not report CPU time.
func processorTime() time.Duration { return time.Since(processBegan) }
