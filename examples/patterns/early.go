package patterns

import "github.com/gopawl/pawl/workflow"

// Receipt is the answer that comes before the end. Receipt.Watch waits for it.
var Receipt = workflow.DefineValue[string]("receipt")

// Order answers early: it publishes a receipt once the goods are reserved. Whoever waits for the receipt
// need not wait for the rest.
func Order(w World) *workflow.Flow[string, string] {
	return workflow.Define("order", func(r *workflow.Run, goods string) (string, error) {
		if err := do(r, w, "reserve "+goods); err != nil {
			return "", err
		}
		if err := Receipt.Publish(r, "receipt for "+goods); err != nil {
			return "", err
		}
		for _, what := range []string{"pack ", "ship "} {
			if err := do(r, w, what+goods); err != nil {
				return "", err
			}
		}
		return "shipped", nil
	})
}
