package handlers_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/handlers"
	"github.com/gopawl/pawl/worker"
)

// An app that runs commands and sends requests besides its own jobs.
func Example() {
	ctx := context.Background()
	q, err := bolt.Open("jobs.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	logs, err := handlers.NewLogs("jobs.logs", 1000)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := handlers.NewRunner("jobs.runs", []string{"pdftotext", "/opt/app/bin/report"}, &handlers.ExecOptions{
		Roots:  []string{"/srv/documents"},
		Dir:    "/srv/documents",
		JobEnv: []string{"REPORT_MONTH"},
		OnRun:  logs.Keep,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer runner.Close()
	for _, orphan := range runner.Orphans() {
		log.Printf("ended what a killed worker left of job %s: %v %v", orphan.Job, orphan.PIDs, orphan.Err)
	}

	sender, err := handlers.NewSender(&handlers.HTTPOptions{
		Allow: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}, // our own services
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.Close()

	w := worker.New(q, &worker.Options{Concurrency: 8, Timeout: 10 * time.Minute})
	worker.Handle(w, handlers.Exec, runner.Run)
	worker.Handle(w, handlers.HTTP, sender.Send)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A command is a list of arguments; what a retry means is said by the job.
func ExampleCommand() {
	job, err := handlers.Exec.Envelope(handlers.Command{
		Args:      []string{"/opt/app/bin/report", "--month", "2024-05"},
		Env:       map[string]string{"REPORT_MONTH": "2024-05"},
		Permanent: []int{2}, // wrong arguments
	}, pawl.Timeout(time.Hour), pawl.MaxRetries(5))
	fmt.Println(job.Kind, job.Timeout, err)
	// Output: pawl.exec 1h0m0s <nil>
}

// A request that deletes something: that it is gone already is fine.
func ExampleRequest() {
	job, err := handlers.HTTP.Envelope(handlers.Request{
		Method: "DELETE",
		URL:    "https://api.example.com/things/7",
		OK:     []int{404, 410},
	})
	fmt.Println(job.Kind, err)
	// Output: pawl.http <nil>
}

// Programs that are not there when the runner is made are a mistake, not a surprise later.
func ExampleNewRunner() {
	dir, _ := os.MkdirTemp("", "pawl-*")
	defer os.RemoveAll(dir)
	_, err := handlers.NewRunner(filepath.Join(dir, "runs"), []string{"./report"}, nil)
	fmt.Println(err)
	// Output: create a command runner: "./report" on the allow-list is relative; give an absolute path, or a name that is in PATH
}
