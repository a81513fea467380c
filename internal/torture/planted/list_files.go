package planted

// files are faults in what looks at whole files.
var files = []Fault{
	{
		Name: "pages are not looked at", Breaks: "a file with damaged pages is refused before it is mapped",
		Edits: []Edit{{"bolt/preflight.go", "		err = pages.Check(context.Background(), f, info.Size())\n", "		if !PLANTED {\n			err = pages.Check(context.Background(), f, info.Size())\n		}\n"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
	{
		Name: "a compaction forgets sequences", Breaks: "a compacted file is the same queue",
		Edits: []Edit{{"bolt/backup.go", "	if err := to.SetSequence(from.Sequence()); err != nil {\n", "	if err := to.SetSequence(from.Sequence()); err != nil || PLANTED && to.SetSequence(0) != nil {\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a compaction forgets a row", Breaks: "a compacted file is the same queue",
		Edits: []Edit{{"bolt/backup.go", "		if err := to.Put(k, v); err != nil {\n", "		if PLANTED && k[len(k)-1]%8 == 7 {\n			continue\n		}\n		if err := to.Put(k, v); err != nil {\n"}},
		By:    []Hunt{{Family: "soak", Units: 50_000}},
	},
	{
		Name: "a failed sync leaves no mark", Breaks: "the next open knows that a sync failed",
		Edits: []Edit{{"bolt/mark.go", "	if markErr := mark(path, transaction); markErr != nil {\n", "	if PLANTED {\n		return err\n	}\n	if markErr := mark(path, transaction); markErr != nil {\n"}},
		By:    []Hunt{{Family: "syncs", Units: 100}},
	},
	{
		Name: "half a meta page counts as refused", Breaks: "an error that says that nothing was stored is true",
		Edits: []Edit{{"bolt/mark.go", "	case shows(db, transaction):\n", "	case !PLANTED && shows(db, transaction):\n"}},
		By:    []Hunt{{Family: "syscalls-random", Units: 300}},
	},
	{
		Name: "a mark is removed and no copy made", Breaks: "after a failed sync nothing builds on what it wrote",
		Edits: []Edit{{"bolt/mend.go", "	a.log.Warn(\"a sync failed when", "	if PLANTED {\n		return false, os.Remove(path + markSuffix)\n	}\n	a.log.Warn(\"a sync failed when"}},
		By:    []Hunt{{Family: "syncs", Units: 100}},
	},
}
