package other

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl/workflow"
)

func Stamp() string { return time.Now().String() } // want Stamp:"uses time.Now"

func Through() string { return Stamp() } // want Through:"uses time.Now"

func Until() time.Duration { return time.Until(time.Time{}) } // want Until:"uses time.Until"

func Log(text string) { fmt.Println(time.Now(), text) }

// Lazy reads no clock itself.
func Lazy() func() time.Time { return func() time.Time { return time.Now() } }

func Pure() string { return fmt.Sprint(1) }

func Call(r *workflow.Run) error { return workflow.Sleep(r, "s", 1) } // want Call:"makes calls"

func Key(r *workflow.Run) string { return r.Key() } // want Key:"makes no calls"
