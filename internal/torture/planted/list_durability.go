package planted

// durability are faults in what is on the disk when somebody is answered.
var durability = []Fault{
	{
		Name: "no sync", Breaks: "what was acknowledged survives a power cut",
		Edits: []Edit{{"bolt/file.go", "		NoFreelistSync: true,\n", "		NoFreelistSync: true,\n		NoSync: PLANTED,\n"}},
		By:    []Hunt{{Family: "power", Units: 400}},
	},
	{
		Name: "acknowledges before the commit", Breaks: "an answer follows the commit",
		Edits: []Edit{
			{"bolt/commit.go", "		if chores && t.err == nil { // what is undone serves nobody\n			s.chores(t)\n		}\n		return nil\n", `		if PLANTED {
			for _, c := range group {
				c.answer(c.err)
			}
		}
		if chores && t.err == nil {
			s.chores(t)
		}
		return nil
`},
			{"bolt/commit.go", "	for _, c := range group {\n		c.answer(c.err)\n	}\n", `	for _, c := range group {
		if !PLANTED {
			c.answer(c.err)
		}
	}
`},
		},
		By: []Hunt{{Family: "kill", Units: 500}, {Family: "power", Units: 400}},
	},
	{
		Name: "goes on after a failed sync", Breaks: "a failed sync stops the queue",
		Edits: []Edit{{"bolt/refused.go", "	if errors.As(err, &errno) {\n		return false\n", "	if errors.As(err, &errno) {\n		return PLANTED\n"}},
		By:    []Hunt{{Family: "failed-sync-images", Units: 3000}},
	},
	{
		Name: "no folder sync", Breaks: "the name of a new file survives a power cut",
		Edits: []Edit{{"bolt/file.go", "	if err == nil {\n		err = atomicfile.SyncFolder(filepath.Dir(path))\n", "	if err == nil && !PLANTED {\n		err = atomicfile.SyncFolder(filepath.Dir(path))\n"}},
		By:    []Hunt{{Family: "power", Units: 400}},
	},
	{
		Name: "what a killed process wrote is not synced", Breaks: "nothing builds on what the disk may not have",
		Edits: []Edit{{"bolt/file.go", "	err := db.Sync()\n	if err == nil {\n", "	if PLANTED {\n		return nil\n	}\n	err := db.Sync()\n	if err == nil {\n"}},
		By:    []Hunt{{Family: "power", Units: 6000, Seed: 5, Step: 10}},
	},
	{
		Name: "a backup is not synced", Breaks: "a backup that was made survives a power cut",
		Edits: []Edit{{"internal/atomicfile/atomicfile.go", "			err = Sync(f)\n", "			if !PLANTED {\n				err = Sync(f)\n			}\n"}},
		By:    []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
	},
	{
		Name: "half a batch", Breaks: "jobs that are stored together are stored all or none",
		Edits: []Edit{{"bolt/enqueue.go", "		if j.existing || j.dropped {\n			continue\n", "		if j.existing || j.dropped || PLANTED && i > 4 {\n			continue\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a refused call is answered as done", Breaks: "an error says that nothing was stored",
		Edits: []Edit{{"bolt/commit.go", "				refusals, tooLarge, full = refusals+1, min(tooLarge, c.bytes), refused.error\n			}\n			c.answer(refused.error)\n", `				refusals, tooLarge, full = refusals+1, min(tooLarge, c.bytes), refused.error
			}
			if PLANTED {
				c.answer(nil)
				continue
			}
			c.answer(refused.error)
`}},
		By: []Hunt{{Family: "full", Units: 50}},
	},
	{
		Name: "writes in Close after a failed sync", Breaks: "nothing is written on top of a failed sync",
		Edits: []Edit{{"bolt/queue.go", "		if s.fatal == nil && lost == nil {\n", "		if s.fatal == nil && lost == nil || PLANTED {\n"}},
		By:    []Hunt{{Family: "syncs", Units: 100}},
	},
	{
		Name: "leases are answered before the commit", Breaks: "a lease that somebody has is in the file",
		Edits: []Edit{
			{"bolt/serve.go", "		t.lend(f.jobs)\n", "		t.lend(f.jobs)\n		if PLANTED {\n			f.answer(nil)\n		}\n"},
			{"bolt/serve.go", "			f.answer(f.err)\n", "			if !PLANTED || f.err != nil {\n				f.answer(f.err)\n			}\n"},
		},
		By: []Hunt{{Family: "kill", Units: 500}},
	},
	{
		Name: "not created whole", Breaks: "a file is whole or is not there",
		Edits: []Edit{{"bolt/file.go", "	err := atomicfile.Place(path, initFile)\n", "	create := atomicfile.Place\n	if PLANTED {\n		create = func(path string, fill func(string) error) error { return fill(path) }\n	}\n	err := create(path, initFile)\n"}},
		By:    []Hunt{{Family: "power", Units: 400}},
	},
}
