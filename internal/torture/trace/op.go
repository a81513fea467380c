package trace

// Kind says what an op does.
type Kind int

const (
	Say        Kind = iota // the process wrote a line of output
	Write                  // bytes of a file
	Truncate               // the size of a file
	Sync                   // fsync of a file
	DataSync               // fdatasync of a file
	Create                 // a new file appears under a name
	Link                   // a file gets a second name
	Rename                 // a file changes its name, and may take the name of another file
	Unlink                 // a name is removed
	SyncFolder             // fsync of the folder
)

var kinds = []string{"say", "write", "truncate", "sync", "datasync", "create", "link", "rename", "unlink", "syncfolder"}

func (k Kind) String() string { return kinds[k] }

// Op is what a call does to the folder.
type Op struct {
	Kind Kind
	File int    // which file, numbered as they appear; names change, numbers do not
	Name string // the name in the folder
	To   string // the other name, for a link and a rename
	At   int64  // offset of a write
	Data []byte // bytes of a write
	Size int64  // for a truncate
	Text string // the line of output, without its end

	// Failed reports that the call returned an error, or that the process died inside it and
	// it has not happened.
	Failed bool
}

// IsSync reports whether an op makes something durable.
func (o *Op) IsSync() bool { return o.Kind == Sync || o.Kind == DataSync || o.Kind == SyncFolder }

// Event is the start or the end of an op. If the process died inside an op, a change ends with the
// process, and a sync and a line have no end.
type Event struct {
	*Op
	Begin bool
}
