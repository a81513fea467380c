package admin

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/gopawl/pawl"
)

// table is every endpoint.
func (h *handler) table() map[string]map[string]route {
	get, post := http.MethodGet, http.MethodPost
	table := map[string]map[string]route{
		pathStats: {get: {answer: h.stats}},
		pathJobs: {
			get:  {answer: h.list, gate: h.lists, large: largePage, params: true},
			post: {answer: h.enqueue, change: true},
		},
		pathJobs + "/{id}": {get: {answer: h.job, gate: h.lists, params: true}},
		pathIDs:            {get: {answer: h.findIDs, gate: h.lists, params: true}},
		pathDo:             {post: {answer: h.do, change: true}},
		pathSummary:        {get: {answer: h.summary, gate: h.lists, params: true}},
		pathPause:          {post: {answer: h.pause, change: true}},
		pathResume:         {post: {answer: h.resume, change: true}},
		pathReap:           {post: {answer: h.reap, change: true}},
		pathEffects:        {get: {answer: h.effects, gate: h.lists, params: true}},
		pathRestore:        {post: {answer: h.restore, change: true}},
		pathCheck:          {post: {stream: h.check, gate: h.checks}},
		pathBackup:         {get: {stream: h.backup, gate: h.backups}},
		pathEvents:         {get: {stream: h.events, gate: h.streams}},
	}
	h.workflowRoutes(table)
	return table
}

// decode reads a body, which has no field that this version does not know, and none twice:
// what is left out could be what somebody meant. How long its lists may be, their types say.
func decode(body []byte, v any) error {
	err := strictJSON(body, math.MaxInt)
	if err == nil {
		err = strict(body, v)
	}
	if err == nil || errors.Is(err, pawl.ErrInvalid) || errors.Is(err, pawl.ErrBatchTooLarge) {
		return err
	}
	return invalid("body", "%v", err)
}

// liveJobs are the jobs of a body.
func liveJobs(jobs []Job) ([]*pawl.Envelope, error) {
	all := make([]*pawl.Envelope, len(jobs))
	for i := range jobs {
		e, err := jobs[i].Envelope()
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
		all[i] = e
	}
	return all, nil
}

// largePage reports whether a page is asked for that will be large.
func largePage(r *http.Request) bool {
	v := r.URL.Query()
	limit, _ := strconv.Atoi(v.Get(paramLimit))
	detail := v.Get(paramDetail)
	return detail == detailNames[Whole] || detail == detailNames[Payloads] || limit > DefaultLimit
}

func (h *handler) stats(r *http.Request, _ []byte) (any, error) {
	s, err := h.admin.Stats(r.Context())
	if err != nil {
		return nil, err
	}
	return statsBodyOf(s), nil
}

func (h *handler) list(r *http.Request, _ []byte) (any, error) {
	q, form, err := queryOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page, err := h.admin.List(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return pageBodyOf(page, q.Detail, form), nil
}

func (h *handler) job(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	form := PayloadForm(p.oneOf(paramForm, formNames, int(PayloadAuto)))
	if err := p.end(); err != nil {
		return nil, err
	}
	id, err := pawl.ParseID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	e, err := h.admin.Job(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return JobOf(e, form), nil
}

func (h *handler) findIDs(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	part := p.text(paramPart)
	if err := p.end(); err != nil {
		return nil, err
	}
	ids, err := h.admin.FindIDs(r.Context(), part)
	return idsBody{ids}, err
}

func (h *handler) enqueue(r *http.Request, body []byte) (any, error) {
	return h.store(body, func(jobs []*pawl.Envelope, effects []effectBody) error {
		if len(effects) > 0 {
			return invalid("effects", "they can be restored, not enqueued")
		}
		return h.admin.Enqueue(r.Context(), jobs...)
	})
}

func (h *handler) restore(r *http.Request, body []byte) (any, error) {
	return h.store(body, func(jobs []*pawl.Envelope, effects []effectBody) error {
		return h.admin.Restore(r.Context(), jobs, effectsOf(effects))
	})
}

func (h *handler) store(body []byte, keep func([]*pawl.Envelope, []effectBody) error) (any, error) {
	var b jobsBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	jobs, err := liveJobs(b.Jobs)
	if err != nil {
		return nil, err
	}
	if err := keep(jobs, b.Effects); err != nil {
		return nil, err
	}
	return storedAnswerOf(jobs), nil
}

func (h *handler) do(r *http.Request, body []byte) (any, error) {
	var b doBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	action, err := b.action()
	if err != nil {
		return nil, err
	}
	errs, err := h.admin.Do(r.Context(), action, b.IDs...)
	if err != nil {
		return nil, err
	}
	answer := doneAnswer{make([]*problem, len(errs))}
	for i, err := range errs {
		answer.Errors[i], _ = problemOf(err)
	}
	return answer, nil
}

// nothing is the answer where there is nothing to say.
type nothing struct{}

// empty requires a body that asks for nothing: none, or {}.
func empty(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	return decode(body, &nothing{})
}

func (h *handler) pause(r *http.Request, body []byte) (any, error) {
	var b queueName
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	return nothing{}, h.admin.Pause(r.Context(), string(b.Queue))
}

func (h *handler) resume(r *http.Request, body []byte) (any, error) {
	var b queueName
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	return nothing{}, h.admin.Resume(r.Context(), string(b.Queue))
}

func (h *handler) reap(r *http.Request, body []byte) (any, error) {
	if err := empty(body); err != nil {
		return nil, err
	}
	n, err := h.admin.Reap(r.Context())
	return reapBody{n}, err
}

func (h *handler) effects(r *http.Request, _ []byte) (any, error) {
	p := params{values: r.URL.Query()}
	after := p.text(paramAfter)
	if err := p.end(); err != nil {
		return nil, err
	}
	effects, next, err := h.admin.Effects(r.Context(), after)
	if err != nil {
		return nil, err
	}
	return effectsBody{effectBodiesOf(effects), next}, nil
}
