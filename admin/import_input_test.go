package admin

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// changing is an export that is modified between the check and the storing.
type changing struct {
	*strings.Reader
	then  string
	seeks int
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	if c.seeks++; c.seeks == 3 { // its end, its beginning, the first line that is read again
		c.Reader = strings.NewReader(c.then)
	}
	return c.Reader.Seek(offset, whence)
}

// Rule: an export that changes during the import is reported, and no unchecked line is stored.
func TestImportOfAnExportThatChanges(t *testing.T) {
	first, second := jobLine(simpleJob(1, nil)), jobLine(simpleJob(2, nil))
	export := exportLines(first, second)
	for rule, then := range map[string]string{
		"another job":     exportLines(first, jobLine(simpleJob(3, nil))),
		"a bad job":       exportLines(first, strings.Replace(second, `"ready"`, `"readx"`, 1)),
		"another line":    exportLines(first, `{"queue":{"name":"x","paused":false}}`),
		"no JSON":         exportLines(first, strings.Repeat("x", len(second))),
		"it was cut":      exportLines(first)[:60+len(first)],
		"it was emptied":  "",
		"it lost a queue": strings.Replace(export, "\n", "\n\n", 1),
	} {
		t.Run(rule, func(t *testing.T) {
			w := &watched{Admin: Of(transferQueue(t))}
			_, err := Import(t.Context(), w, &changing{Reader: strings.NewReader(export), then: then}, nil)
			require.Error(t, err)
			require.Regexp(t, regexp.MustCompile(`^import: line [123]: it is not what it was .*0 jobs were stored before$`), err.Error())
			require.Empty(t, w.changes)
		})
	}
}

// Rule: input that cannot be read twice is refused with the remedy, and Spool fixes it.
func TestImportOfAPipe(t *testing.T) {
	export := exportLines(jobLine(simpleJob(1, nil)))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = io.WriteString(w, export)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	to := transferQueue(t)
	_, err = Import(t.Context(), Of(to), r, nil)
	require.ErrorContains(t, err, "Spool")

	t.Setenv("TMPDIR", t.TempDir())
	spooled, err := Spool(r)
	require.NoError(t, err)
	text, err := io.ReadAll(spooled)
	require.NoError(t, err)
	require.Equal(t, export, string(text), "it is at its beginning")
	imported, err := Import(t.Context(), Of(to), spooled, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, imported.Jobs)
	require.NoError(t, spooled.Close())
	entries, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Rule: a failed spool leaves no file behind.
func TestSpoolThatFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Spool(io.MultiReader(strings.NewReader("a"), failing{}))
	require.ErrorIs(t, err, errWatched)
	entries, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, entries)

	t.Setenv("TMPDIR", "/nowhere")
	_, err = Spool(strings.NewReader("a"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errWatched }

// Rule: new fields of a newer version are skipped and reported; a new type of line is refused,
// and so is everything unknown in an export of this version.
func TestImportOfANewerVersion(t *testing.T) {
	job := strings.Replace(jobLine(simpleJob(1, nil)), `{"job":{`, `{"job":{"shade":"blue",`, 1)
	export := exportLines(job)
	newer := strings.Replace(export, `"pawl_export":1,`, `"pawl_export":5,"lamp":"on",`, 1)
	to := transferQueue(t)
	imported, err := Import(t.Context(), Of(to), strings.NewReader(newer), nil)
	require.NoError(t, err)
	require.Equal(t, 5, imported.Version)
	require.Len(t, jobsIn(t, to), 1)

	_, err = Import(t.Context(), Of(to), strings.NewReader(export), nil)
	require.ErrorContains(t, err, `line 2: json: unknown field "shade"`)
	_, err = Import(t.Context(), Of(to), strings.NewReader(strings.Replace(newer, `"shade"`, `"kind"`, 1)), nil)
	require.ErrorContains(t, err, `name "kind" twice`, "it is as strict about what it knows")
	_, err = Import(t.Context(), Of(to), strings.NewReader(strings.Replace(newer, `{"end"`, `{"lease":{}}`+"\n"+`{"end"`, 1)), nil)
	require.ErrorContains(t, err, "line 3: it has 0 of queue, schedule, group, job")
	require.Len(t, jobsIn(t, to), 1)
}
