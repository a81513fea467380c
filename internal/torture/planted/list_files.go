package planted

// files are faults in the handling of whole files.
var files = []Fault{
	{
		Name: "pages are not checked", Breaks: "a file with damaged pages is refused before bbolt maps it",
		Edits: []Edit{{"bolt/inspect", "err = pages.Check(context.Background(), f, info.Size())", skip}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
	{
		Name: "a compaction forgets sequences", Breaks: "a compact file is the same queue",
		Edits: []Edit{{"bolt/compaction.bucket", "var last []byte", `if PLANTED {
	if err := to.SetSequence(0); err != nil {
		return err
	}
}
$`}},
		By: []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a compaction forgets a row", Breaks: "a compact file is the same queue",
		Edits: []Edit{{"bolt/compaction.bucket", "if err := to.Put(k, v); err != nil { return err }", "if PLANTED && k[len(k)-1]%8 == 7 { continue }; $"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a failed sync leaves no marker", Breaks: "the next open knows about a failed sync",
		Edits: []Edit{{"bolt/commitMarked", "db, path, transaction := tx.DB(), tx.DB().Path(), tx.ID()", `$
mark := mark
if PLANTED {
	mark = func(string, int) error { return nil }
}`}},
		By: []Hunt{{Family: "syncs", Units: 100}},
	},
	{
		Name: "half a meta page counts as refused", Breaks: "after an error that says so, nothing was stored",
		Edits: []Edit{{"bolt/commitMarked", "shows(db, transaction)", "!PLANTED && $"}},
		By:    []Hunt{{Family: "syscalls-random", Units: 300}},
	},
	{
		Name: "a marker is removed without a copy", Breaks: "nothing builds on the writes of a failed sync",
		Edits: []Edit{{"bolt/mend", "failed, ok, err := marked(path)", `$
if PLANTED && err == nil && ok && !a.readOnly && canLock {
	return false, os.Remove(path + markSuffix)
}`}},
		By: []Hunt{{Family: "syncs", Units: 100}},
	},
}
