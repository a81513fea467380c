package handlers

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// stat is the state of a process.
type stat struct {
	state          byte
	group, session int
	threads        string
	start          string // in ticks since the system started
}

// over reports whether the process has ended and waits to be reaped. It has not while other
// threads run, even if its first thread has ended.
func (s stat) over() bool {
	return (s.state == 'Z' || s.state == 'X') && (s.threads == "1" || s.threads == "0")
}

// readStat reads /proc/pid/stat; see proc_pid_stat(5). The second field is a name with
// arbitrary characters, so fields are counted from its last parenthesis.
func readStat(pid int) (s stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return s, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	s.state, s.threads, s.start = fields[0][0], fields[17], fields[19]
	s.group, err = strconv.Atoi(fields[2])
	if err == nil {
		s.session, err = strconv.Atoi(fields[3])
	}
	return s, err
}

// identify returns what distinguishes a process from a later one with the same number.
func identify(pid int) (start, boot string) {
	s, err := readStat(pid)
	if err != nil {
		return "", ""
	}
	return s.start, bootID()
}

func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(text))
}

// survivor is a live process of an attempt.
type survivor struct {
	pid   int
	start string // see identify
}

// survivors returns the live processes of an attempt. A process is marked if it has the attempt's
// lock open or its environment names the attempt. The group and session of the attempt count as
// well, if the first process or a marked process is in them. A process that left the session, closed all
// files and cleared its environment is not found.
func survivors(rec record, path string) []survivor {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	file, _ := os.Stat(path)
	boot := bootID()
	all := make(map[int]stat)
	var found []survivor
	ours := false // whether the group and session are confirmed to be the attempt's
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		s, err := readStat(pid)
		if err != nil || s.over() {
			continue
		}
		first := pid == rec.PID && s.start == rec.Start && boot == rec.Boot
		if first || marked(pid, rec, file) {
			found = append(found, survivor{pid, s.start})
			ours = ours || s.belongs(rec)
			continue
		}
		all[pid] = s
	}
	for pid, s := range all {
		if ours && s.belongs(rec) {
			found = append(found, survivor{pid, s.start})
		}
	}
	slices.SortFunc(found, func(a, b survivor) int { return a.pid - b.pid })
	return found
}

// belongs reports whether a process is in the recorded group or session of an attempt.
func (s stat) belongs(rec record) bool {
	return rec.PID > 0 && (s.group == rec.PID || s.session == rec.PID)
}

// marked reports whether a process carries a mark of the attempt.
func marked(pid int, rec record, file os.FileInfo) bool {
	open, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, lockFD))
	if err == nil && file != nil && os.SameFile(open, file) {
		return true
	}
	if rec.Run == "" {
		return false
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // another user's, or gone
	}
	mark := []byte(runVariable + "=" + rec.Run)
	for variable := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(variable, mark) {
			return true
		}
	}
	return false
}

// alive reports whether the process has not ended. An ended process has closed its files.
func (s survivor) alive() bool {
	now, err := readStat(s.pid)
	return err == nil && now.start == s.start && !now.over()
}

// kill kills the process. It opens a handle (pidfd) first and then checks the start time, so
// that it never kills another process that reused the number.
func (s survivor) kill() {
	p, err := os.FindProcess(s.pid)
	if err != nil {
		return
	}
	defer p.Release()
	if s.alive() {
		_ = p.Kill() // a process that survives is found again
	}
}
