package planted

// files are faults in the handling of whole files.
var files = []Fault{
	newFault("pages are not checked", "a file with damaged pages is refused before bbolt maps it", by("hostile", 2000),
		Edit{"bolt/inspect", "err = pages.Check(context.Background(), f, info.Size())", skip}),
	newFault("a compaction forgets sequences", "a compact file is the same queue", by("soak", 50_000),
		Edit{"bolt/compaction.bucket", "var last []byte", `if PLANTED {
	if err := to.SetSequence(0); err != nil {
		return err
	}
}
$`}),
	newFault("a compaction forgets a row", "a compact file is the same queue", by("soak", 50_000),
		Edit{"bolt/compaction.bucket", "if err := to.Put(k, v); err != nil { return err }", "if PLANTED && k[len(k)-1]%8 == 7 { continue }; $"}),
	newFault("a failed sync leaves no marker", "the next open knows about a failed sync", by("syncs", 100),
		Edit{"bolt/commitMarked", "db, path, transaction := tx.DB(), tx.DB().Path(), tx.ID()", `$
mark := mark
if PLANTED {
	mark = func(string, int) error { return nil }
}`}),
	newFault("half a meta page counts as refused", "after an error that says so, nothing was stored", by("syscalls-random", 300),
		Edit{"bolt/commitMarked", "shows(db, transaction)", "!PLANTED && $"}),
	newFault("a marker is removed without a copy", "nothing builds on the writes of a failed sync", by("syncs", 100),
		Edit{"bolt/repair", "failed, ok, err := marked(path)", `$
if PLANTED && err == nil && ok && !a.readOnly && canLock {
	return false, os.Remove(path + markSuffix)
}`}),
}
