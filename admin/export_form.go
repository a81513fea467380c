package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/gopawl/pawl"
)

// exportHeader is the first line of an export.
type exportHeader struct {
	Version int    `json:"pawl_export"`
	At      Stamp  `json:"at"`
	Path    Text   `json:"path"`
	Library string `json:"library"`
}

// exportLine is any other line. Exactly one of its fields is set.
type exportLine struct {
	Queue   *exportQueue  `json:"queue,omitempty"`
	Job     *Job          `json:"job,omitempty"`
	Run     *exportRun    `json:"run,omitempty"`
	Damaged *exportDamage `json:"damaged,omitempty"`
	Effect  *exportEffect `json:"effect,omitempty"`
	End     *exportEnd    `json:"end,omitempty"`

	Schedule *exportSchedule `json:"schedule,omitempty"`
	Group    *exportGroup    `json:"group,omitempty"`
}

type exportQueue struct {
	Name   Text `json:"name"`
	Paused bool `json:"paused"`
}

type exportDamage struct {
	ID    *pawl.ID `json:"id"`
	Error Text     `json:"error"`
}

type exportEffect struct {
	Kind  Text  `json:"kind"`
	Key   Text  `json:"key"`
	Until Stamp `json:"until"`
}

// exportEnd is the last line: how many lines of each type precede it.
type exportEnd struct {
	Queues  int64 `json:"queues"`
	Jobs    int64 `json:"jobs"`
	Effects int64 `json:"effects"`
	Damaged int64 `json:"damaged"`
	Runs    int64 `json:"runs"` // counts the last line of each run; version 1 had no runs

	Schedules int64 `json:"schedules"` // versions 1 and 2 had none
	Groups    int64 `json:"groups"`    // version 3 had none
}

// readHeader reads the first line of an export.
func readHeader(text []byte) (h exportHeader, err error) {
	if json.Unmarshal(text, &h) != nil || h.Version < 1 {
		return h, errors.New("an export begins with a line such as {\"pawl_export\":1, …}, so this is none")
	}
	if h.Version > ExportVersion {
		return h, nil
	}
	return h, strict(text, &h)
}

// readLine reads a line after the first one. It ignores fields of a newer version, but not a
// newer type of line, since the meaning of an export without that line is unknown.
func readLine(text []byte, newer bool) (l exportLine, err error) {
	read := strict
	if newer {
		read = json.Unmarshal
	}
	if err := read(text, &l); err != nil {
		return l, err
	}
	sorts := 0
	for _, there := range [...]bool{l.Queue != nil, l.Job != nil, l.Run != nil, l.Damaged != nil, l.Effect != nil, l.End != nil, l.Schedule != nil, l.Group != nil} {
		if there {
			sorts++
		}
	}
	if sorts != 1 {
		return l, fmt.Errorf("it has %d of queue, schedule, group, job, run, damaged, effect and end; exactly one is needed", sorts)
	}
	return l, nil
}

// libraryVersion returns the version of this library in the running program.
func libraryVersion() string {
	const path = "github.com/gopawl/pawl"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == path && module.Version != "" {
			return module.Version
		}
	}
	return "(devel)"
}
