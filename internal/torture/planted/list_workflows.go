package planted

// workflows are faults in the journals of runs.
var workflows = []Fault{
	{
		Name: "a signal is not consumed", Breaks: "a run gets each signal once",
		Edits: []Edit{{"workflow/takeSignal.Apply", "t.key == nil", "$ || PLANTED"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a finished step runs again", Breaks: "a finished step never runs again",
		Edits: []Edit{{"workflow/scope.find", "e.State != EntryPending", "$ && !(PLANTED && kind == KindStep)"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a transaction without its entry", Breaks: "the writes of a StepTx and its end are one",
		Edits: []Edit{{"workflow/inTransaction", "return q.MutateTx(tx, cp)", "if PLANTED { return nil }; $"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a run ends before its job", Breaks: "the end of a run and the ack of its job are one",
		Edits: []Edit{{"workflow/finish.Check", "return ops.Ack(f.x.lease)", "if PLANTED { return ops.Hold(f.x.lease) }; $"}},
		By:    []Hunt{{Family: "workflow", Units: 200}},
	},
	{
		Name: "a child does not notify its parent", Breaks: "the end of a child notifies its parent",
		Edits: []Edit{{"workflow/wakeParent", "state == pawl.Delayed", "!PLANTED && $"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a loser keeps its child", Breaks: "a decided race leaves no child of a loser",
		Edits: []Edit{{"workflow/decide.Apply", "return rowsTo(tx).putAll(d.children)", "if PLANTED { return nil }; $"}},
		By:    []Hunt{{Family: "workflow", Units: 200}},
	},
	{
		Name: "an ID starts two runs", Breaks: "a run is started once",
		Edits: []Edit{{"workflow/start.Check", "known == pawl.ID{}", "$ || PLANTED"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "entries are numbered anew", Breaks: "entries of a journal are never replaced",
		Edits: []Edit{{"workflow/execution.index", "x.last = max(x.last, e.seq)", skip}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a branch has no entry", Breaks: "a renamed branch never runs again",
		Edits: []Edit{{"workflow/execution.enter", "e.seq != 0", "$ && !PLANTED"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
	{
		Name: "a run forgets its journal", Breaks: "a run continues from its journal",
		Edits: []Edit{{"workflow/rows.entries", "journal = append(journal, e)", "if !PLANTED || e.Kind != KindStep { $ }"}},
		By:    []Hunt{{Family: "workflow", Units: 60}},
	},
}
