package main

import (
	"maps"
	"slices"

	"github.com/gopawl/pawl/bolt"
)

// salvageView is the outcome of a salvage in JSON.
type salvageView struct {
	From          string            `json:"from"`
	To            string            `json:"to"`
	Jobs          int               `json:"jobs"`
	Ready         int               `json:"ready"`
	Delayed       int               `json:"delayed"`
	Leased        int               `json:"leased"`
	Dead          int               `json:"dead"`
	Completed     int               `json:"completed"`
	Kept          int               `json:"kept"`
	Placed        int               `json:"placed"`
	Reattached    int               `json:"reattached"`
	Unreached     int               `json:"unreached"`
	NoRecord      int               `json:"no_record"`
	NoPayload     int               `json:"no_payload"`
	HistoryLost   int               `json:"history_lost"`
	RowsLost      []lostRowsView    `json:"rows_lost"`
	AppRows       int               `json:"app_rows"`
	AppLost       int               `json:"app_lost"`
	DamagedPages  int               `json:"damaged_pages"`
	Pages         []damagedPageView `json:"pages"`
	MetaPage      *int              `json:"meta_page"`
	Older         bool              `json:"older"`
	FormatAssumed bool              `json:"format_assumed"`
}

type lostRowsView struct {
	Bucket string `json:"bucket"`
	Rows   int    `json:"rows"`
}

type damagedPageView struct {
	Page   uint64 `json:"page"`
	Bucket string `json:"bucket"`
	Error  string `json:"error"`
}

func viewOfSalvaged(from, to string, s *bolt.Salvaged) salvageView {
	c := s.Counts
	v := salvageView{
		From: from, To: to,
		Jobs:  sum(&c),
		Ready: c.Ready, Delayed: c.Delayed, Leased: c.Leased, Dead: c.Dead, Completed: c.Completed,
		Kept: s.Kept, Placed: s.Placed, Reattached: s.Reattached, Unreached: s.Unreached, NoRecord: s.NoRecord, NoPayload: s.NoPayload,
		HistoryLost: s.History, RowsLost: []lostRowsView{}, AppRows: s.AppRows, AppLost: s.AppLost,
		DamagedPages: s.Pages, Pages: []damagedPageView{}, Older: s.Older, FormatAssumed: s.NoFormat,
	}
	if s.Meta >= 0 {
		v.MetaPage = &s.Meta
	}
	for _, bucket := range slices.Sorted(maps.Keys(s.Lost)) {
		v.RowsLost = append(v.RowsLost, lostRowsView{bucket, s.Lost[bucket]})
	}
	for _, p := range s.Damaged {
		v.Pages = append(v.Pages, damagedPageView{p.Page, p.Bucket, p.Err.Error()})
	}
	return v
}
