package workflow

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// journalTexts are the texts of the sentinels in the journals of all releases.
var journalTexts = map[string]struct {
	is   error
	text string
}{
	"workflow.ErrSuspended":   {ErrSuspended, "the run waits; return from its function"},
	"workflow.ErrCancelled":   {ErrCancelled, "the run was cancelled"},
	"workflow.ErrTerminated":  {ErrTerminated, "the run was terminated"},
	"workflow.ErrDeadline":    {ErrDeadline, "the deadline of the run has passed"},
	"workflow.ErrTimeout":     {ErrTimeout, "no signal came in time"},
	"workflow.ErrInterrupted": {ErrInterrupted, "the step was interrupted, and runs at most once"},
	"workflow.ErrNested":      {ErrNested, "a call was made inside another"},
	"workflow.ErrAbandoned":   {ErrAbandoned, "the branch was abandoned"},
	"workflow.ErrNotFound":    {ErrNotFound, "no such run"},
	"workflow.ErrConflict":    {ErrConflict, "the ID is taken by another run"},
	"workflow.ErrNotRunning":  {ErrNotRunning, "the run has ended"},
	"workflow.ErrUndeclared":  {ErrUndeclared, "the flow does not declare this signal"},
	"workflow.ErrRejected":    {ErrRejected, "the run rejected the request"},
	"workflow.ErrTooMany":     {ErrTooMany, "a limit of workflows is reached"},
	"workflow.ErrTooLarge":    {ErrTooLarge, "value is too large"},
	"workflow.ErrCodec":       {ErrCodec, "the codec of the engine does not fit"},
	"workflow.ErrNoFlow":      {ErrNoFlow, "this build does not have the flow"},
	"pawl.ErrInvalid":         {pawl.ErrInvalid, "invalid"},
	"pawl.ErrPayloadTooLarge": {pawl.ErrPayloadTooLarge, "payload too large"},
	"pawl.ErrPayloadEncoding": {pawl.ErrPayloadEncoding, "payload encoding"},
	"pawl.ErrBatchTooLarge":   {pawl.ErrBatchTooLarge, "batch too large"},
	"pawl.ErrLeaseLost":       {pawl.ErrLeaseLost, "lease lost"},
	"pawl.ErrNotAccepted":     {pawl.ErrNotAccepted, "operation was not accepted"},
	"pawl.ErrUnknownOutcome":  {pawl.ErrUnknownOutcome, "outcome unknown"},
	"pawl.ErrPoisoned":        {pawl.ErrPoisoned, "queue is poisoned"},
	"pawl.ErrEmpty":           {pawl.ErrEmpty, "no job to fetch"},
	"pawl.ErrClosed":          {pawl.ErrClosed, "queue is closed; stop what uses it, workers above all, before Close"},
	"pawl.ErrNotFound":        {pawl.ErrNotFound, "no such job"},
	"pawl.ErrConflict":        {pawl.ErrConflict, "conflict"},
	"pawl.ErrNewerFormat":     {pawl.ErrNewerFormat, "file has a newer format than this build reads"},
	"pawl.ErrOwnJob":          {pawl.ErrOwnJob, "the running job itself has the unique key"},
	"pawl.ErrSignature":       {pawl.ErrSignature, "bad signature"},
	"pawl.ErrResultTooLarge":  {pawl.ErrResultTooLarge, "result too large"},
	"pawl.ErrCursorTooLarge":  {pawl.ErrCursorTooLarge, "cursor too large"},
	"pawl.ErrQueueFull":       {pawl.ErrQueueFull, "queue is full"},
	"pawl.ErrNoResult":        {pawl.ErrNoResult, "job succeeded without a result"},
	"pawl.ErrUnsupported":     {pawl.ErrUnsupported, "unsupported operation"},
	"pawl.ErrCorrupt":         {pawl.ErrCorrupt, "corrupt data"},
	"worker.ErrTimeout":       {worker.ErrTimeout, "the attempt took longer than its timeout"},
	"worker.ErrDeadline":      {worker.ErrDeadline, "the deadline of the job has passed"},
	"worker.ErrCancelled":     {worker.ErrCancelled, "the job was cancelled"},
	"worker.ErrStopping":      {worker.ErrStopping, "the worker is stopping"},
	"worker.ErrLeaseInDoubt":  {worker.ErrLeaseInDoubt, "it is unknown whether the lease still holds"},
	"worker.ErrHandlerExists": {worker.ErrHandlerExists, "kind has a handler already"},
}

// Rule: the identity of a sentinel in a journal is its text. A release may change its type, and
// not its text.
func TestSentinelsInJournals(t *testing.T) {
	var declared []string
	for name, folder := range map[string]string{"workflow": ".", "pawl": "..", "worker": "../worker"} {
		declared = append(declared, sentinelsOf(t, name, folder)...)
	}
	require.Contains(t, declared, "pawl.ErrNotEligible")
	declared = slices.DeleteFunc(declared, func(name string) bool { return name == "pawl.ErrNotEligible" })
	require.Len(t, sentinels, len(declared))
	for _, name := range declared {
		known, ok := journalTexts[name]
		require.True(t, ok, "%s is not in this test", name)
		require.Contains(t, sentinels, known.is, name)
		require.EqualError(t, known.is, known.text)
		stored := &StepError{chain: []errorText{{Type: "*older.Type", Text: known.text}}}
		require.ErrorIs(t, stored, known.is)
	}
	conflict := &StepError{chain: []errorText{{Type: "*errors.errorString", Text: "conflict"}}}
	require.NotErrorIs(t, conflict, pawl.ErrNotEligible, "its type tells it from ErrConflict")
	require.Equal(t, "pawl.notEligible", typeOf(pawl.ErrNotEligible))

	stored := &StepError{chain: []errorText{{Type: "*older.Type", Text: bolt.ErrDisk.Error()}, {Type: "*older.Type", Text: "of the app"}}}
	require.ErrorIs(t, stored, bolt.ErrDisk)
	require.NotErrorIs(t, stored, driver.NewSentinel("disk", "another text"))
	require.NotErrorIs(t, stored, errors.New("of the app"), "the type of another error counts")
}

// sentinelsOf returns the exported error variables of a package.
func sentinelsOf(t *testing.T, name, folder string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, s := range d.Specs {
					if id := s.(*ast.ValueSpec).Names[0].Name; strings.HasPrefix(id, "Err") {
						found = append(found, name+"."+id)
					}
				}
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}
