package patterns

import "github.com/gopawl/pawl/workflow"

// Task is work for a tenant.
type Task struct{ Tenant, What string }

// What a run of [Turns] receives.
var (
	NewTask = workflow.DefineSignal[Task]("task")
	NoMore  = workflow.DefineSignal[string]("no more")
)

// Turns does one task of each tenant in turn, so a tenant with many tasks does not keep others waiting. It
// returns the order.
func Turns(w World) *workflow.Flow[int, []string] {
	return workflow.Define("turns", func(r *workflow.Run, _ int) (order []string, err error) {
		waiting := make(map[string][]string) // by tenant
		var tenants []string                 // with tasks, in the order of their turns
		for closed := false; !closed || len(tenants) > 0; {
			var task Task
			cases := []workflow.Case{NewTask.Case(&task), NoMore.Case(nil)}
			if len(tenants) > 0 {
				cases = append(cases, workflow.After(0)) // only look
			}
			switch n, err := workflow.Select(r, "task", cases...); {
			case err != nil:
				return nil, err
			case n == 0:
				if len(waiting[task.Tenant]) == 0 {
					tenants = append(tenants, task.Tenant)
				}
				waiting[task.Tenant] = append(waiting[task.Tenant], task.What)
				continue
			case n == 1:
				closed = true
				continue
			}
			next := tenants[0]
			what := waiting[next][0]
			if err := do(r, w, what); err != nil {
				return nil, err
			}
			order, tenants = append(order, what), tenants[1:]
			if waiting[next] = waiting[next][1:]; len(waiting[next]) > 0 {
				tenants = append(tenants, next)
			}
		}
		return order, nil
	})
}
