package planted

// answers are faults in what callers are told, and in what is left to them.
var answers = []Fault{
	{
		Name: "an unknown outcome is answered as done", Breaks: "a failed sync is no success",
		Edits: []Edit{{"bolt/scheduler.go", "			c.answer(unknown)\n", "			if PLANTED {\n				unknown = nil\n			}\n			c.answer(unknown)\n"}},
		By:    []Hunt{{Family: "failed-sync-images", Units: 3000}},
	},
	{
		Name: "events are told before the commit", Breaks: "what is told is durable",
		Edits: []Edit{{"bolt/commit.go", "	if t.changed {\n		err = ", "	if PLANTED {\n		s.observer.tell(t.events)\n		t.events = nil\n	}\n	if t.changed {\n		err = "}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an ack of a lost lease is no error", Breaks: "who has lost a lease is told so",
		Edits: []Edit{{"bolt/settle.go", "		op.errs[i] = err\n", "		if !PLANTED {\n			op.errs[i] = err\n		}\n"}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a call does not wake the scheduler", Breaks: "a call is answered",
		Edits: []Edit{{"bolt/intake.go", "			in.came.Add(1)\n			in.ring()\n			return nil\n", "			in.came.Add(1)\n			if !PLANTED || n > 0 {\n				in.ring()\n			}\n			return nil\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a handler does not hear that its job was cancelled", Breaks: "a run whose job is cancelled is told to end",
		Edits: []Edit{{"bolt/leases.go", "			g.cancelled.Fire()\n", "			if !PLANTED {\n				g.cancelled.Fire()\n			}\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "an Update that failed is committed", Breaks: "a function that fails stores nothing",
		Edits: []Edit{{"bolt/update.go", "		err := s.await(u)\n", "		err := s.await(u)\n		if PLANTED {\n			err = nil\n		}\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a heart does not beat", Breaks: "a job that is held is not given to another",
		Edits: []Edit{{"worker/heartbeat.go", "		case <-ticker.C:\n			s.extend(ctx)\n", "		case <-ticker.C:\n			if !PLANTED {\n				s.extend(ctx)\n			}\n"}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "the pause of a queue is ignored", Breaks: "a paused queue gives no jobs",
		Edits: []Edit{{"bolt/pick.go", "		if !row.paused {\n", "		if !row.paused || PLANTED {\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a fetch brings one job too many", Breaks: "a fetch brings no more than it asks for",
		Edits: []Edit{{"bolt/pick.go", "	for len(s.sources) > 0 && len(s.jobs) < s.request.Max && ", "	most := s.request.Max\n	if PLANTED {\n		most++\n	}\n	for len(s.sources) > 0 && len(s.jobs) < most && "}},
		By:    []Hunt{{Family: "simulate", Units: 200}},
	},
	{
		Name: "a clock that comes right is not noticed", Breaks: "a job is promoted within a minute after the clock comes right",
		Edits: []Edit{{"bolt/scheduler.go", "	if expires, held := s.leases.next(); held {\n", "	if PLANTED && ok {\n		wait = max(wait, s.due.Sub(s.now()))\n	}\n	if expires, held := s.leases.next(); held {\n"}},
		By:    []Hunt{{Family: "clock", Units: 200}},
	},
}

// leftovers are faults that leave rows or files of what is over.
var leftovers = []Fault{
	{
		Name: "a deadline stays behind", Breaks: "a deadline belongs to a job",
		Edits: []Edit{{"bolt/expire.go", "		t.delete(t.expiry, deadlineKey(nil, j.Envelope))\n", "		if !PLANTED {\n			t.delete(t.expiry, deadlineKey(nil, j.Envelope))\n		}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "nobody looks at a deadline", Breaks: "a job dies at its deadline",
		Edits: []Edit{{"bolt/expire.go", "	t.put(t.expiry, key, seal(key, nil))\n", "	if !PLANTED {\n		t.put(t.expiry, key, seal(key, nil))\n	}\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a unique key is not taken", Breaks: "no two jobs of one unique key",
		Edits: []Edit{{"bolt/unique.go", "	if j.UniqueKey != \"\" {\n		key := ", "	if j.UniqueKey != \"\" && !PLANTED {\n		key := "}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "a record is not retained", Breaks: "a success is kept as long as it is to",
		Edits: []Edit{{"bolt/moves.go", "	if j.Retain <= 0 {\n", "	if j.Retain <= 0 || PLANTED {\n"}},
		By:    []Hunt{{Family: "kill", Units: 100}},
	},
	{
		Name: "a compaction is not synced", Breaks: "a compaction that was made survives a power cut",
		Edits: []Edit{{"bolt/backup.go", "		err = dst.Sync() // once", "		if !PLANTED {\n			err = dst.Sync()\n		} // once"}},
		By:    []Hunt{{Family: "power", Units: 2400, Seed: 4, Step: 10}},
	},
	{
		Name: "a temporary file stays", Breaks: "nothing is left but the queue's file",
		Edits: []Edit{{"internal/atomicfile/atomicfile.go", "	defer func() { err = errors.Join(err, ignoreNotExist(os.Remove(temp))) }()\n", "	defer func() {\n		if !PLANTED {\n			err = errors.Join(err, ignoreNotExist(os.Remove(temp)))\n		}\n	}()\n"}},
		By:    []Hunt{{Family: "soak", Units: 20_000}},
	},
	{
		Name: "the checksum of a record is not compared", Breaks: "a record whose bytes were changed is not believed",
		Edits: []Edit{{"parse.go", "	case binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:]):\n", "	case binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:]) && !PLANTED:\n"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
	{
		Name: "a payload is not looked at", Breaks: "a payload whose bytes were changed is not believed",
		Edits: []Edit{{"bolt/store.go", "	b, err := unseal(id[:], sealed, -1)\n	if err != nil {\n", "	b, err := unseal(id[:], sealed, -1)\n	if PLANTED && err != nil && len(sealed) > sealWidth {\n		b, err = sealed[:len(sealed)-sealWidth], nil\n	}\n	if err != nil {\n"}},
		By:    []Hunt{{Family: "hostile", Units: 2000}},
	},
}
