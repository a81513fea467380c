package analyzer

import (
	"go/types"
	"strings"
)

const (
	pawlPath     = "github.com/gopawl/pawl"
	workflowPath = pawlPath + "/workflow"
)

// advice says what goes wrong with a name in a workflow, and what to write instead.
type advice struct{ wrong, instead string }

var (
	clock  = advice{"gives another time when the run continues", "use workflow.Now, or read the clock in a step"}
	wait   = advice{"holds a slot of the worker, and waits anew when the run continues", "use workflow.Sleep, or workflow.After in a Select"}
	random = advice{"gives another value when the run continues", "draw it in workflow.Decide, or in a step"}
	world  = advice{"may do or return something else when the run continues", "do it in a step"}
	lock   = advice{"can keep the run from being suspended", "let branches return their results, or share a value by workflow.Share"}
	effect = advice{"happens again when the run continues", "do it in a step, or use the form that takes the Run"}
)

// advised has the names that a workflow must not use, by package. A method has its type before its name.
var advised = map[string]map[string]advice{
	"time": named(clock, "Now", "Since", "Until").
		and(wait, "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"),
	"context": named(wait, "WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"),
	pawlPath:  named(random, "NewID").and(effect, "Kind.Enqueue"),
	workflowPath: named(effect, "StartTx", "Flow.Start", "Signal.Send", "Engine.Send", "Engine.Cancel", "Engine.Terminate").
		and(world, "Flow.Handle", "Handle.Result", "Handle.Info", "Value.Get", "Value.Watch", "Stream.Read", "Stream.Watch"),
	"sync": named(lock, "Mutex.Lock", "RWMutex.Lock", "RWMutex.RLock", "Locker.Lock", "WaitGroup.Wait", "WaitGroup.Go", "Cond.Wait"),
	"os": named(world, "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Hostname", "Getwd", "Getpid",
		"Open", "OpenFile", "OpenRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Stat", "Lstat",
		"Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename"),
	"os/exec":      named(world, "Cmd.Run", "Cmd.Start", "Cmd.Output", "Cmd.CombinedOutput"),
	"net":          named(world, "Dial", "DialTimeout", "Dialer.Dial", "Dialer.DialContext", "Listen", "LookupHost", "LookupIP", "LookupAddr"),
	"net/http":     named(world, "Get", "Head", "Post", "PostForm", "Client.Do", "Client.Get", "Client.Head", "Client.Post", "Client.PostForm"),
	"database/sql": sqlNames("DB").join(sqlNames("Tx")).join(sqlNames("Conn")),
	"runtime":      named(world, "NumCPU", "NumGoroutine", "GOMAXPROCS"),
	"hash/maphash": named(random, "MakeSeed", "String", "Bytes", "Comparable"),
}

type names map[string]advice

func named(a advice, all ...string) names { return names{}.and(a, all...) }

func (n names) and(a advice, all ...string) names {
	for _, name := range all {
		n[name] = a
	}
	return n
}

func (n names) join(other names) names {
	for name, a := range other {
		n[name] = a
	}
	return n
}

func sqlNames(recv string) names {
	n := names{}
	for _, verb := range []string{"Exec", "Query", "QueryRow", "Prepare", "Ping", "Begin"} {
		n.and(world, recv+"."+verb, recv+"."+verb+"Context", recv+"."+verb+"Tx")
	}
	return n
}

// adviceFor returns what is wrong with a function or a variable in a workflow.
func adviceFor(obj types.Object) (name string, a advice, found bool) {
	if obj == nil || obj.Pkg() == nil {
		return "", a, false
	}
	path := obj.Pkg().Path()
	name = obj.Name()
	fn, isFunc := obj.(*types.Func)
	if isFunc {
		if recv := receiver(fn); recv != "" {
			name = recv + "." + name
		}
	} else if path != "crypto/rand" || name != "Reader" {
		return "", a, false
	}
	shown := obj.Pkg().Name() + "." + name
	switch path {
	case "crypto/rand":
		return "crypto/" + shown, random, true
	case "math/rand", "math/rand/v2":
		// A generator with a seed of its own gives the same values again.
		return shown, random, isFunc && fn.Signature().Recv() == nil && !strings.HasPrefix(name, "New")
	}
	a, found = advised[path][name]
	return shown, a, found
}

// receiver returns the name of the type of a method, or "".
func receiver(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := types.Unalias(recv.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// isRun reports whether a type is *workflow.Run.
func isRun(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	n, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && n.Obj().Name() == "Run" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == workflowPath
}

// takesRun reports whether a function has a parameter of type *workflow.Run.
func takesRun(sig *types.Signature) bool {
	for v := range sig.Params().Variables() {
		if isRun(v.Type()) {
			return true
		}
	}
	return false
}

// isIn reports whether a function is one of a package.
func isIn(obj types.Object, path string) bool {
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == path
}
