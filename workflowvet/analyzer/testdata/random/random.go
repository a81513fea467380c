package random

import (
	crypto "crypto/rand"
	"fmt"
	"io"
	"math/rand"
	v2 "math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var Flow = workflow.Define("f", func(r *workflow.Run, seed int64) (int, error) {
	_ = rand.Int()    // want `rand.Int in a workflow gives another value when the run continues; draw it in workflow.Decide, or in a step`
	_ = v2.N(10)      // want `rand.N in a workflow`
	_ = crypto.Text() // want `crypto/rand.Text in a workflow`
	var b [8]byte
	if _, err := io.ReadFull(crypto.Reader, b[:]); err != nil { // want `crypto/rand.Reader in a workflow`
		return 0, err
	}
	fmt.Println(pawl.NewID(time.Time{})) // want `pawl.NewID in a workflow`
	if _, err := workflow.Decide(r, "a", rand.Int); err != nil {
		return 0, err
	}
	if _, err := workflow.Decide(r, "b", func() int { return rand.Int() }); err != nil {
		return 0, err
	}
	own := rand.New(rand.NewSource(seed)) // the same values each time
	return own.Int() + v2.New(v2.NewPCG(1, 2)).Int(), nil
})
