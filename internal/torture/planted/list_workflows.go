package planted

// workflows are faults in the journals of runs.
var workflows = []Fault{
	newFault("a signal is not consumed", "a run gets each signal once", by("workflow", 60),
		Edit{"workflow/takeSignal.Apply", "t.key == nil", "$ || PLANTED"}),
	newFault("a finished step runs again", "a finished step never runs again", by("workflow", 60),
		Edit{"workflow/scope.find", "e.State != EntryPending", "$ && !(PLANTED && kind == KindStep)"}),
	newFault("a transaction without its entry", "the writes of a StepTx and its end are one", by("workflow", 60),
		Edit{"workflow/inTransaction", "return q.MutateTx(tx, cp)", "if PLANTED { return nil }; $"}),
	newFault("a run ends before its job", "the end of a run and the ack of its job are one", by("workflow", 200),
		Edit{"workflow/finish.Check", "return ops.Ack(f.x.lease)", "if PLANTED { return ops.Hold(f.x.lease) }; $"}),
	newFault("a child does not notify its parent", "the end of a child notifies its parent", by("workflow", 60),
		Edit{"workflow/wakeParent", "state == pawl.Delayed", "!PLANTED && $"}),
	newFault("a loser keeps its child", "a decided race leaves no child of a loser", by("workflow", 200),
		Edit{"workflow/decide.Apply", "return rowsTo(tx).putAll(d.children)", "if PLANTED { return nil }; $"}),
	newFault("an ID starts two runs", "a run is started once", by("workflow", 60),
		Edit{"workflow/start.Check", "known == pawl.ID{}", "$ || PLANTED"}),
	newFault("entries are numbered anew", "entries of a journal are never replaced", by("workflow", 60),
		Edit{"workflow/execution.index", "x.last = max(x.last, e.seq)", skip}),
	newFault("a branch has no entry", "a renamed branch never runs again", by("workflow", 60),
		Edit{"workflow/execution.enter", "e.seq != 0", "$ && !PLANTED"}),
	newFault("a run forgets its journal", "a run continues from its journal", by("workflow", 60),
		Edit{"workflow/rows.entries", "journal = append(journal, e)", "if !PLANTED || e.Kind != KindStep { $ }"}),
}
