package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// editable reports whether the arguments of a job can be replaced. Those of a workflow run belong to the run.
func editable(e *pawl.Envelope) bool {
	waits := e.State == pawl.Ready || e.State == pawl.Delayed || e.State == pawl.Dead
	return waits && len(e.Signature) == 0 && !strings.HasPrefix(e.Kind, workflow.KindPrefix)
}

// pastValue is the arguments that a job had before an operator replaced them.
type pastValue struct {
	admin.PastPayload
	Value *value // nil if they were not kept
}

// edits returns the earlier arguments of a job, the newest first.
func (q *request) edits(e *pawl.Envelope) (all []pastValue) {
	for _, past := range admin.EditsOf(e) {
		all = append([]pastValue{{past, q.valueOf(past.Payload)}}, all...)
	}
	return all
}

// editChange replaces the arguments of a job.
func editChange() change {
	return change{path: "edit", action: Edit,
		plan: func(q *request) (plan, error) {
			job, err := q.jobToEdit()
			if err != nil {
				return plan{}, err
			}
			p := plan{Title: "Edit job " + job.ID.String(), Keep: url.Values{"id": {job.ID.String()}}, Back: link("job", "id", job.ID), Button: "Replace the arguments",
				Lines:    []string{"The new arguments replace the old ones. The job keeps its ID and its history, and a header names the old arguments."},
				Commands: []string{q.editCommand(job)}}
			if job.State == pawl.Dead {
				p.Button += " and retry"
				p.Lines = append(p.Lines, "The job becomes ready, and its attempts start again from 0.")
			}
			tried, err := q.d.admin.Edit(q.ctx, admin.Edit{ID: job.ID, Payload: job.Payload, DryRun: true})
			switch {
			case errors.Is(err, pawl.ErrPayloadEncoding):
				p.Lines = append(p.Lines, "The old arguments do not fit the type of the kind: "+err.Error()+".")
			case err != nil:
				return plan{}, err
			default:
				p.Lines = append(p.Lines, typedLine(tried, "are"))
			}
			text := field{Name: "payload", Label: "Arguments", Help: "as JSON", Long: true, Rows: 16}
			if q.Can(ViewPayload) {
				if text.Value, err = q.jsonOf(job.Payload); err != nil {
					return plan{}, err
				}
				p.Keep.Set("was", admin.SumOf(job.Payload))
				if strings.Contains(text.Value, hidden) {
					p.Lines = append(p.Lines, "A hidden field keeps its value while its text stays "+hiddenText+".")
				}
			}
			p.Fields = []field{text}
			return p, nil
		},
		do: func(q *request) (result, error) {
			job, err := q.jobToEdit()
			if err != nil {
				return result{}, err
			}
			r := result{Title: "Edit job " + job.ID.String(), Back: link("job", "id", job.ID), target: job.ID.String(), Commands: []string{q.editCommand(job)}}
			payload, err := q.edited(job, q.PostForm.Get("payload"))
			if err != nil {
				return r, err
			}
			done, err := q.d.admin.Edit(q.ctx, admin.Edit{ID: job.ID, Payload: payload, Was: q.PostForm.Get("was")})
			if errors.Is(err, pawl.ErrPayloadEncoding) {
				return r, &refusal{http.StatusBadRequest, err.Error(), "Nothing was changed. Go back and correct the field."}
			}
			r.OK, r.Lines = err == nil, []string{"The arguments were replaced.", typedLine(done, "were")}
			if job.State == pawl.Dead {
				r.Lines = append(r.Lines, "The job is ready.")
			}
			return r, err
		},
	}
}

// typedLine says whether the type of the kind checks new arguments.
func typedLine(e admin.Edited, are string) string {
	if e.Typed {
		return "They " + are + " checked by the type that the worker has for the kind."
	}
	return "They " + are + " not checked by the type of the kind, because no worker of a running app has the kind here."
}

func (q *request) editCommand(job *pawl.Envelope) string {
	return q.command("job", "edit", job.ID.String(), "@FILE")
}

// jobToEdit returns the job that a request for an edit names.
func (q *request) jobToEdit() (*pawl.Envelope, error) {
	id, err := pawl.ParseID(q.Form.Get("id"))
	if err != nil {
		return nil, err
	}
	return q.d.admin.Job(q.ctx, id)
}

// jsonOf returns a whole payload as JSON without its hidden fields.
func (q *request) jsonOf(payload []byte) (string, error) {
	text, whole, err := admin.DecodeJSON(payload, maxValue)
	if err != nil || !whole {
		return "", &refusal{http.StatusConflict, "The arguments are too large for this page, or are not MessagePack.", "Edit them with jobctl job edit."}
	}
	return q.d.redacted(text), nil
}

// edited returns the payload that a user asks for. Hidden fields keep the values that the job has.
func (q *request) edited(job *pawl.Envelope, text string) ([]byte, error) {
	payload, err := admin.EncodeJSON([]byte(text))
	if err != nil || !strings.Contains(text, hiddenText) {
		return payload, err
	}
	old, _, err := admin.DecodeJSON(job.Payload, len(job.Payload)*8+maxValue)
	if err != nil {
		return nil, err
	}
	was, err := treeOf(old)
	if err != nil {
		return nil, err
	}
	now, err := treeOf([]byte(text))
	if err != nil {
		return nil, err
	}
	if now, err = q.d.uncovered(now, was); err != nil {
		return nil, err
	}
	whole, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	return admin.EncodeJSON(whole)
}

// treeOf reads JSON. Numbers stay as they are.
func treeOf(text []byte) (tree any, err error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	return tree, in.Decode(&tree)
}

// uncovered replaces the text for a hidden value by the value that the job has in the same place. In a list,
// the place may have changed, so uncovered refuses hidden values there.
func (d *Dashboard) uncovered(now, was any) (any, error) {
	switch now := now.(type) {
	case map[string]any:
		old, _ := was.(map[string]any)
		for name, value := range now {
			var err error
			if before, known := old[name]; value != hiddenText || !d.hides(name) {
				now[name], err = d.uncovered(value, before)
			} else if now[name] = before; !known {
				err = invalid("payload", "field %q is hidden, and the job has no value there to keep; write one", clipped(name))
			}
			if err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range now {
			if _, err := d.uncovered(now[i], nil); err != nil {
				return nil, fmt.Errorf("element %d of a list: %w", i, err)
			}
		}
	}
	return now, nil
}
