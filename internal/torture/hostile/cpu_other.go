//go:build !unix

package hostile

import "time"

var processBegan = time.Now()

// processorTime is how long this process runs: the time on processors is not asked for.
func processorTime() time.Duration { return time.Since(processBegan) }
