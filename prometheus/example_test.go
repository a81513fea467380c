package prometheus_test

import (
	"fmt"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/prometheus"
)

func ExampleNewCollector() {
	var tally metrics.Tally
	q := memory.New(&memory.Options{Collector: &tally})
	defer q.Close()

	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(q, &tally))
	families, err := registry.Gather()
	fmt.Println(len(families), err) // the queue is empty
	// Output: 0 <nil>
}
