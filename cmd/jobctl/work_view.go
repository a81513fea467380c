package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/handlers"
	"github.com/gopawl/pawl/worker"
)

// workView is a line of `work`. Its field names are stable, as are those of view.go.
type workView struct {
	At         admin.Stamp `json:"at"`
	Result     string      `json:"result"`
	ID         string      `json:"id"`
	Kind       admin.Text  `json:"kind"`
	Queue      admin.Text  `json:"queue"`
	Attempt    int         `json:"attempt"`
	What       admin.Text  `json:"what"`
	ExitCode   *int        `json:"exit_code"`
	Took       admin.Span  `json:"took"`
	Delay      admin.Span  `json:"delay"`
	Reason     *admin.Text `json:"reason"`
	Error      *admin.Text `json:"error"`
	OutputFile *admin.Text `json:"output_file"`
	OutputCut  int64       `json:"output_cut_bytes"`
	Missed     int64       `json:"missed"`

	brief string // the error for people
}

func viewOfRun(result string, e *pawl.Event, ran *ranJob) workView {
	v := workView{
		At: admin.Stamp{Time: e.At}, Result: result, ID: e.Job.ID.String(),
		Kind: admin.Text(e.Job.Kind), Queue: admin.Text(e.Job.Queue), Attempt: ran.attempt, What: admin.Text(ran.what),
		ExitCode: ran.code, Took: admin.Span(e.Took), Delay: admin.Span(e.Delay), OutputCut: ran.cut,
	}
	if e.Type == pawl.EventDied && e.Job.Death != nil {
		v.Reason = optional(string(e.Job.Death.Reason))
	}
	v.Error, v.OutputFile = optional(e.Cause), optional(ran.file)
	v.brief = brief(e.Cause, ran.err)
	return v
}

// brief returns the part of an error that fits into a line. For a command that ended by itself,
// that is its last output, since the line already has the exit code.
func brief(cause string, err error) string {
	exit := new(handlers.ExitError)
	if !errors.As(err, &exit) {
		line, _, _ := strings.Cut(cause, "\n")
		return line
	}
	for _, ended := range []error{worker.ErrTimeout, worker.ErrDeadline, worker.ErrCancelled} {
		if errors.Is(err, ended) {
			return ended.Error()
		}
	}
	return exit.Tail[strings.LastIndexByte(exit.Tail, '\n')+1:]
}

// optional returns a text that is null if it is empty.
func optional(text string) *admin.Text {
	if text == "" {
		return nil
	}
	return (*admin.Text)(&text)
}

// How many characters of a command, and of an error with its remedy, fit into a line.
const (
	whatWidth  = 60
	briefWidth = 240
)

// workLine returns an attempt for people. Lines arrive one by one, so columns have fixed widths.
func (a *app) workLine(v *workView) string {
	line := fmt.Sprintf("%s  %-8s  %s  %s", v.At.In(a.location()).Format("15:04:05.000"), v.Result, v.ID, cell(string(v.What), whatWidth))
	switch {
	case v.ExitCode == nil:
	case *v.ExitCode < 0:
		line += "  by a signal"
	default:
		line += fmt.Sprintf("  exit %d", *v.ExitCode)
	}
	if took := v.Took.Duration().Round(time.Millisecond); took > 0 {
		line += "  took " + took.String()
	}
	if v.Result == "retry" {
		line += "  again in " + v.Delay.Duration().Round(time.Millisecond).String()
	}
	if v.Reason != nil {
		line += "  " + cell(string(*v.Reason), nameWidth)
	}
	if v.brief != "" {
		line += "  " + cell(v.brief, briefWidth)
	}
	return line
}
