package silence

import (
	"time"

	"github.com/gopawl/pawl/workflow"
)

var Flow = workflow.Define("f", func(r *workflow.Run, _ int) (time.Time, error) {
	_ = time.Now()         //workflowvet:ok for a line of the log
	_ = time.Now()         /* want `time.Now in a workflow` `workflowvet:ok without a reason silences nothing; write behind it why the line is right` */ //workflowvet:ok
	_ = time.Now()         //workflowvet:okay is another word // want `time.Now in a workflow`
	return time.Now(), nil // want `time.Now in a workflow`
})
