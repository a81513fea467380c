package postgres

import (
	"bytes"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// leastCopy is the number of new jobs from which COPY is worth its cost. COPY needs extra round trips, but the
// server stores jobs while the client encodes others, and neither keeps all of them in arrays.
const leastCopy = 256

// mostCopied is how many jobs one COPY stores. For each of the first thousand rows, the server registers the
// same descriptor in a hash table, and walks over those that it registered before. So twice as many rows take
// four times as long there. (ResourceArrayAdd and ResourceArrayRemove, in src/backend/utils/resowner/resowner.c)
const mostCopied = 350

// canCopy reports whether to store n new jobs by COPY. Transactions of package database/sql have no COPY, so
// transactions of the app never use it.
func (t *txn) canCopy(n int) bool {
	_, own := t.tx.Tx.(*pgx.Conn)
	return own && n >= leastCopy
}

// copyNew stores new jobs by COPY.
func (t *txn) copyNew(jobs []*job, lines []int32) error {
	if err := t.tx.send(t.ctx); err != nil {
		return err
	}
	columns, statement := uint16(newColumnCount), sqlCopy
	switch {
	case haveTags(jobs):
		columns, statement = fairColumnCount, sqlCopyFair
	case haveExtras(jobs):
		columns, statement = extraColumnCount, sqlCopyExtra
	}
	for len(jobs) > 0 {
		n := min(len(jobs), mostCopied)
		if _, err := t.q.conn.PgConn().CopyFrom(t.ctx, newCopier(jobs[:n], lines[:n], columns), t.q.sql(statement)); err != nil {
			return err
		}
		jobs, lines = jobs[n:], lines[n:]
	}
	return nil
}

// copier reads jobs as COPY wants them.
// Format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
type copier struct {
	jobs    []*job
	lines   []int32
	columns uint16       // newColumnCount, or the count with the extra columns
	ready   bytes.Buffer // encoded bytes that were not read yet
}

const (
	copyHead = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // signature, no flags, no extension
	copyTail = "\xff\xff"
)

func newCopier(jobs []*job, lines []int32, columns uint16) *copier {
	c := &copier{jobs: jobs, lines: lines, columns: columns}
	c.ready.Grow(128 << 10) // pgconn reads 64 KiB at a time
	c.ready.WriteString(copyHead)
	return c
}

// Read implements [io.Reader].
func (c *copier) Read(p []byte) (int, error) {
	for c.ready.Len() < len(p) && len(c.jobs) > 0 {
		row := copyRow(binary.BigEndian.AppendUint16(c.ready.AvailableBuffer(), c.columns)).job(c.jobs[0], c.lines[0])
		if c.columns >= extraColumnCount {
			row = row.extras(c.jobs[0])
		}
		if c.columns == fairColumnCount {
			row = row.text(string(c.jobs[0].fairColumn())).time(c.jobs[0].dueColumn())
		}
		c.ready.Write(row)
		if c.jobs, c.lines = c.jobs[1:], c.lines[1:]; len(c.jobs) == 0 {
			c.ready.WriteString(copyTail)
		}
	}
	return c.ready.Read(p)
}

// copyRow is a row in the format of COPY: the number of fields, and the length and the bytes of each field.
type copyRow []byte

// job appends the fields of newColumns.
func (r copyRow) job(j *job, line int32) copyRow {
	place, since := j.since()
	r = r.bytes(j.ID[:]).int8(int64(j.Seq)).int8(since).int4(line).int2(place).int2(j.lane()).int2(j.prio())
	at := len(r)
	r = driver.AppendRecord(r.length(0), &j.Envelope, len(j.Payload))
	binary.BigEndian.PutUint32(r[at:], uint32(len(r)-at-4))
	return r.bytes(j.Payload)
}

// extras appends the other fields of extraColumns.
func (r copyRow) extras(j *job) copyRow {
	r = r.time(j.deadline()).text(core.EffectName(&j.Envelope)).text(j.Key).text(j.turn)
	if j.turn != "" {
		r = r.int2(int16(j.order))
	} else {
		r = r.null()
	}
	if j.HoldsKey {
		r = append(r.length(1), 1)
	} else {
		r = r.null()
	}
	if j.Cost > 1 {
		return r.int2(int16(j.Cost))
	}
	return r.null()
}

// text appends a string, or NULL if it is empty.
func (r copyRow) text(s string) copyRow {
	if s == "" {
		return r.null()
	}
	return append(r.length(len(s)), s...)
}

// time appends a time, or NULL.
func (r copyRow) time(at *int64) copyRow {
	if at == nil {
		return r.null()
	}
	return r.int8(*at)
}

func (r copyRow) length(n int) copyRow   { return binary.BigEndian.AppendUint32(r, uint32(n)) }
func (r copyRow) null() copyRow          { return r.length(-1) }
func (r copyRow) bytes(b []byte) copyRow { return append(r.length(len(b)), b...) }
func (r copyRow) int2(n int16) copyRow   { return binary.BigEndian.AppendUint16(r.length(2), uint16(n)) }
func (r copyRow) int4(n int32) copyRow   { return binary.BigEndian.AppendUint32(r.length(4), uint32(n)) }
func (r copyRow) int8(n int64) copyRow   { return binary.BigEndian.AppendUint64(r.length(8), uint64(n)) }
