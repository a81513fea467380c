package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
)

// graphLine is a job to enqueue together with the others of its file: a line of `job enqueue --file`.
type graphLine struct {
	jobLine
	Name     string   `json:"name"`
	After    []string `json:"after"` // names of other lines, or IDs
	AfterAny []string `json:"after_any"`
}

// graphJob is the job of a line.
type graphJob struct {
	*pawl.Envelope
	line  int
	name  string
	needs []*graphJob // other jobs of the file that it waits for
	state graphState
}

type graphState int

const (
	unplaced graphState = iota
	placing             // the jobs that it waits for are being placed
	placed
)

// namedView is an object of `job enqueue --file`.
type namedView struct {
	Name *string `json:"name"`
	enqueuedView
}

// graph is the jobs of a file.
type graph struct {
	lines   []*graphJob
	byName  map[string]*graphJob
	bytes   int              // bytes of all arguments
	ordered []*pawl.Envelope // each job follows the jobs that it waits for
	path    []*graphJob      // the jobs that are being placed
}

// runGraph stores the jobs of a file in one commit.
func (e *enqueuing) runGraph(ctx context.Context, a *app) error {
	g, err := e.readGraph(a)
	if err != nil {
		return err
	}
	if len(g.lines) == 0 {
		return &failure{exitNoMatch, "there are no lines to enqueue", ""}
	}
	stored := make(map[pawl.ID]pawl.Enqueued)
	if !e.dry {
		if stored, err = e.storeGraph(ctx, a, g); err != nil {
			return err
		}
	} else if err := e.checkDry(ctx, a, g.queues()...); err != nil {
		return err
	} else if a.people() || a.flags.output == "ids" {
		return e.reportAll(a, len(g.lines))
	}
	return e.answerGraph(a, g, stored)
}

// readGraph reads the file of --file, and orders its jobs.
func (e *enqueuing) readGraph(a *app) (*graph, error) {
	from, err := a.input(e.file)
	if err != nil {
		if f := new(failure); errors.As(err, &f) {
			f.next = "Name a file of JSON lines, one job each, or - for standard input."
		}
		return nil, err
	}
	defer from.Close()
	g := &graph{byName: make(map[string]*graphJob)}
	var read []graphLine
	err = eachText(from, func(n int, text []byte) error {
		l := graphLine{jobLine: e.line.clone()}
		if err := decodeLine(text, &l); err != nil {
			return atLine(n, err)
		}
		read = append(read, l)
		return atLine(n, g.add(a, n, &l))
	})
	for i := 0; i < len(read) && err == nil; i++ {
		err = atLine(g.lines[i].line, g.connect(g.lines[i], &read[i]))
	}
	for i := 0; i < len(g.lines) && err == nil; i++ {
		err = g.place(g.lines[i])
	}
	if err != nil {
		return nil, &failure{exitError, err.Error(), "Nothing was stored."}
	}
	return g, nil
}

// add makes the job of a line, without its prerequisites.
func (g *graph) add(a *app, n int, l *graphLine) error {
	if len(g.lines) == pawl.MaxBatchJobs {
		return fmt.Errorf("a file has at most %d jobs, since one commit stores them; --batch takes more", pawl.MaxBatchJobs)
	}
	alone := l.jobLine
	alone.After, alone.AfterAny = nil, nil // connect sets them
	job, err := alone.checked()
	if err != nil {
		return err
	}
	if g.bytes += len(job.Payload); g.bytes > pawl.MaxBatchBytes {
		return fmt.Errorf("the arguments of a file have at most %s, since one commit stores them; --batch takes more", plain.Size(pawl.MaxBatchBytes))
	}
	job.ID = pawl.NewID(a.now())
	j := &graphJob{Envelope: job, line: n, name: l.Name}
	g.lines = append(g.lines, j)
	if l.Name == "" {
		return nil
	}
	if _, err := pawl.ParseID(l.Name); err == nil {
		return fmt.Errorf("the name %s is an ID; choose another", l.Name)
	}
	if first := g.byName[l.Name]; first != nil {
		return fmt.Errorf("line %d has the name %q too", first.line, l.Name)
	}
	g.byName[l.Name] = j
	return nil
}

// connect sets what a job waits for. The flags supply what its line omits.
func (g *graph) connect(j *graphJob, l *graphLine) (err error) {
	j.After, j.AfterAny = l.jobLine.After, l.jobLine.AfterAny
	if l.After != nil {
		if j.After, err = g.resolve(j, "after", l.After); err != nil {
			return err
		}
	}
	if l.AfterAny != nil {
		if j.AfterAny, err = g.resolve(j, "after_any", l.AfterAny); err != nil {
			return err
		}
	}
	for _, needed := range j.needs {
		if needed.UniqueKey != "" && needed.OnConflict != pawl.Reject {
			return fmt.Errorf("it waits for line %d, whose unique key another job may have; add \"on_conflict\":\"reject\" there", needed.line)
		}
	}
	return nil
}

// resolve returns the IDs of jobs that are named in a field.
func (g *graph) resolve(j *graphJob, field string, names []string) (ids []pawl.ID, err error) {
	for _, name := range names {
		if needed := g.byName[name]; needed != nil {
			j.needs = append(j.needs, needed)
			ids = append(ids, needed.ID)
			continue
		}
		id, err := pawl.ParseID(name)
		if err != nil {
			return nil, fmt.Errorf("%s: no line has the name %q, and it is not the ID of a job", field, name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// place appends a job to the order, after the jobs that it waits for.
func (g *graph) place(j *graphJob) error {
	switch j.state {
	case placed:
		return nil
	case placing:
		return g.cycle(j)
	}
	j.state = placing
	g.path = append(g.path, j)
	for _, needed := range j.needs {
		if err := g.place(needed); err != nil {
			return err
		}
	}
	g.path = g.path[:len(g.path)-1]
	j.state = placed
	if err := driver.CheckEnvelope(j.Envelope); err != nil {
		return atLine(j.line, err)
	}
	g.ordered = append(g.ordered, j.Envelope)
	return nil
}

// cycle returns the error for jobs that wait for each other: from the given job to the end of the
// path.
func (g *graph) cycle(j *graphJob) error {
	const shown = 8
	var names []string
	for _, of := range append(g.path[slices.Index(g.path, j):], j) {
		names = append(names, strconv.Quote(of.name))
	}
	if len(names) > shown {
		names = append(names[:shown-1], "…", names[len(names)-1])
	}
	return atLine(j.line, fmt.Errorf("the jobs wait for each other: %s", strings.Join(names, " after ")))
}

// queues returns the names of the queues of all jobs.
func (g *graph) queues() []string {
	names := make(map[string]bool)
	for _, job := range g.ordered {
		names[job.Queue] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// storeGraph stores all jobs or none, and returns the result of each.
func (e *enqueuing) storeGraph(ctx context.Context, a *app, g *graph) (map[pawl.ID]pawl.Enqueued, error) {
	stored := make(map[pawl.ID]pawl.Enqueued)
	err := a.with(ctx, func(queue admin.Admin) error {
		if err := e.checkQueues(ctx, queue, g.queues()...); err != nil {
			return err
		}
		// It must be known whether the jobs were stored, so an interruption waits for the answer.
		done, err := queue.Enqueue(context.WithoutCancel(ctx), g.ordered...)
		if err != nil {
			return g.blame(ctx, queue, err)
		}
		for i, one := range done {
			stored[g.ordered[i].ID] = one
		}
		return nil
	})
	if f := new(failure); err == nil || errors.As(err, &f) {
		return stored, err
	}
	f := e.explained(a, err)
	if uncertain(err) {
		f.text += fmt.Sprintf("; perhaps all %d jobs are stored, or none", len(g.lines))
	} else {
		f.text += "; nothing was stored"
	}
	return nil, partial{f}
}

// blame adds the line that names a job or a group which the queue does not have.
func (g *graph) blame(ctx context.Context, queue admin.Admin, err error) error {
	if !errors.Is(err, pawl.ErrNotFound) {
		return err
	}
	known, groups := make(map[pawl.ID]bool), map[string]bool{"": true}
	for _, j := range g.lines {
		known[j.ID] = true
	}
	for _, j := range g.lines {
		for _, id := range slices.Concat(j.After, j.AfterAny) {
			if known[id] {
				continue
			}
			if _, missing := queue.Job(ctx, id); errors.Is(missing, pawl.ErrNotFound) {
				return atLine(j.line, err)
			}
			known[id] = true
		}
		if groups[j.Group] {
			continue
		}
		if _, missing := queue.Groups().Show(ctx, j.Group); errors.Is(missing, pawl.ErrNotFound) {
			return atLine(j.line, err)
		}
		groups[j.Group] = true
	}
	return err
}

// answerGraph prints the result of each line, in the order of the lines.
func (e *enqueuing) answerGraph(a *app, g *graph, stored map[pawl.ID]pawl.Enqueued) error {
	if a.people() {
		a.flags.output = "ids"
	}
	out := &listing{app: a}
	existing := 0
	for _, j := range g.lines {
		one := stored[j.ID]
		if one.Existing {
			existing++
		}
		v := namedView{enqueuedView: e.view(one)}
		if j.name != "" {
			v.Name = &j.name
		}
		if err := out.add(item{id: one.ID.String(), json: v}); err != nil {
			return err
		}
	}
	out.close()
	noteExisting(a, existing)
	return nil
}
