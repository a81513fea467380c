package planted

// workflows are faults in what remembers the steps of a run.
var workflows = []Fault{
	{
		Name: "a signal is not consumed", Breaks: "a run gets each signal once",
		Edits: []Edit{{"workflow/signal.go", "	if t.key == nil {\n		return nil\n", "	if t.key == nil || PLANTED {\n		return nil\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a step that is done runs again", Breaks: "a finished step never runs again",
		Edits: []Edit{{"workflow/run.go", "&call{s, e, true, e.State != EntryPending}", "&call{s, e, true, e.State != EntryPending && !(PLANTED && kind == KindStep)}"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a transaction without its entry", Breaks: "the writes of a StepTx and its end are one",
		Edits: []Edit{{"workflow/steptx.go", "		return q.MutateTx(tx, cp)\n", "		if PLANTED {\n			return nil\n		}\n		return q.MutateTx(tx, cp)\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a run ends before its job", Breaks: "the end of a run and the ack of its job are one",
		Edits: []Edit{{"workflow/finish.go", "	return ops.Ack(f.x.lease)\n", "	if PLANTED {\n		return ops.Hold(f.x.lease)\n	}\n	return ops.Ack(f.x.lease)\n"}},
		By:    []Hunt{{Family: "workflow", Units: 200}},
	},
	{
		Name: "a child does not wake its parent", Breaks: "a run that waits is woken by what it waits for",
		Edits: []Edit{{"workflow/child.go", "	if err == nil && state == pawl.Delayed &&", "	if err == nil && !PLANTED && state == pawl.Delayed &&"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a loser keeps its child", Breaks: "a decided race leaves no child of a loser",
		Edits: []Edit{{"workflow/race.go", "	return rowsTo(tx).putAll(d.children)\n", "	if PLANTED {\n		return nil\n	}\n	return rowsTo(tx).putAll(d.children)\n"}},
		By:    []Hunt{{Family: "workflow", Units: 200}},
	},
	{
		Name: "an ID starts two runs", Breaks: "a run is started once",
		Edits: []Edit{{"workflow/start.go", "	s.new = known == pawl.ID{}\n", "	s.new = known == pawl.ID{} || PLANTED\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "entries are numbered anew", Breaks: "what a journal has stays",
		Edits: []Edit{{"workflow/execution.go", "		x.last = max(x.last, e.seq)\n", "		if !PLANTED {\n			x.last = max(x.last, e.seq)\n		}\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a branch has no entry", Breaks: "a renamed branch never runs again",
		Edits: []Edit{{"workflow/branch.go", "	if e.seq != 0 { // see mute\n", "	if e.seq != 0 && !PLANTED { // see mute\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a run forgets its journal", Breaks: "a run goes on where it was",
		Edits: []Edit{{"workflow/rows.go", "			journal = append(journal, e)\n", "			if !PLANTED || e.Kind != KindStep {\n				journal = append(journal, e)\n			}\n"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
}
