package postgres

// The statements of a queue. "pawl." stands for the schema, which sqlIn puts in. Each statement
// takes the time as a parameter where it needs one, so that a test can run in virtual time.

// sqlClock returns the time of the server in Unix nanoseconds.
const sqlClock = `(extract(epoch FROM clock_timestamp()) * 1000000)::int8 * 1000`

// revision is how often bounds on waiting jobs have changed.
const revision = `(SELECT bounds FROM pawl.revision)`

// ended is the end time stored for a process whose leases are being taken back.
const ended = `(-9223372036854775808)`

const (
	sqlFormat = `SELECT format FROM pawl.meta`

	// sqlSynced reports whether a commit waits until it is on stable storage.
	sqlSynced = `SELECT current_setting('fsync')::bool AND current_setting('synchronous_commit') <> 'off'`

	// sqlRegister makes the row of a process. Its leases last until $3, or for $4 ns from now.
	sqlRegister = `INSERT INTO pawl.process (id, owner, live_until, lease)
VALUES ($1, $2, COALESCE($3, ` + sqlClock + `) + $4, $4)`

	// sqlFence is the first statement of each transaction. It extends the lease of the process and numbers the commit.
	// It reads the clock, and whether bounds have changed. If it returns no row, another process is taking the leases
	// of this process back.
	sqlFence = `UPDATE pawl.process SET commits = $2, live_until = COALESCE($3, ` + sqlClock + `) + $4
WHERE id = $1 AND live_until > ` + ended + ` RETURNING COALESCE($3, ` + sqlClock + `), ` + revision

	// sqlCommits returns the number of the last commit of a process. It waits for a transaction that is still in
	// progress.
	sqlCommits = `SELECT commits FROM pawl.process WHERE id = $1 FOR UPDATE`

	// sqlDead marks processes whose leases must be taken back: the processes of the owner $2, if it
	// is not empty, and if $4 is set, the processes that are past their time. A time that is too
	// far in the future was stored before the clock was set back, and counts as past.
	sqlDead = `UPDATE pawl.process p SET live_until = ` + ended + ` FROM (
	SELECT id FROM pawl.process, COALESCE($3, ` + sqlClock + `) AS now
	WHERE id <> $1 AND (owner = $2 OR $4 AND (live_until <= now OR live_until > now + 2 * lease))
	ORDER BY id FOR UPDATE OF process SKIP LOCKED) dead
WHERE p.id = dead.id RETURNING p.id`

	// sqlOrphans reads the next $2 claims of these processes, and sqlRemoveEnded removes the processes that have no
	// claims left.
	sqlOrphans     = `SELECT token, ids FROM pawl.claim WHERE process = ANY($1) AND token > $3 ORDER BY token LIMIT $2`
	sqlRemoveEnded = `DELETE FROM pawl.process p WHERE id = ANY($1) AND NOT EXISTS (SELECT FROM pawl.claim WHERE process = p.id)`

	// sqlOthers returns when the first of the other processes is past its time.
	sqlOthers = `SELECT min(live_until) FROM pawl.process WHERE id <> $1`
)

// columns are the columns of jobRow.
const columns = `j.id, j.seq, j.token, j.leased_since, j.place, j.cancelled, j.record, j.waits, j.awaited, ` + turnColumn

// turnColumn is the turn of a job, its order, and whether it holds its key, in one column, since few jobs have a turn.
const turnColumn = `CASE WHEN j.turn IS NOT NULL THEN j.turn || set_byte('\x00'::bytea, 0, j.key_order * 2 + COALESCE(j.holds, false)::int4) END`

const (
	sqlLoad = `SELECT ` + columns + ` FROM pawl.job j WHERE j.id = ANY($1) ORDER BY j.id FOR UPDATE`

	// sqlHolders reads who holds unique keys.
	sqlHolders = `SELECT name, id FROM pawl.uniq WHERE name = ANY($1)`

	// sqlDamaged reads jobs without their records.
	sqlDamaged = `SELECT j.id, j.seq, COALESCE(j.due, j.since), j.deadline, j.token, j.place, j.lane, j.prio, j.effect, q.name, l.kind,
	octet_length(j.payload), COALESCE((SELECT max(n) FROM pawl.history h WHERE h.id = j.id), 0),
	j.waits, j.awaited, j.key, ` + turnColumn + `, COALESCE(j.cost, 0::int2)
FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue WHERE j.id = ANY($1)
ORDER BY j.id FOR UPDATE OF j`
	sqlFreeAll = `DELETE FROM pawl.uniq WHERE id = ANY($1)`

	// sqlExpired and sqlRetained read the next $2 jobs that are due at $1, behind the time $3 and the sequence $4.
	sqlExpired = `SELECT ` + columns + ` FROM pawl.job j
WHERE j.place / 3 = 0 AND j.deadline IS NOT NULL AND j.deadline <= $1 AND j.token IS NULL
	AND (j.deadline, j.seq) > ($3, $4)
ORDER BY j.deadline, j.seq LIMIT $2 FOR UPDATE SKIP LOCKED`

	sqlRetained = `SELECT ` + columns + ` FROM pawl.job j
WHERE j.place = 4 AND j.since <= $1 AND (j.since, j.seq) > ($3, $4)
ORDER BY j.since, j.seq LIMIT $2 FOR UPDATE SKIP LOCKED`

	sqlPromote = `WITH due AS (
	SELECT id FROM pawl.job WHERE place = 1 AND since <= $1 ORDER BY since, seq LIMIT $2 FOR UPDATE SKIP LOCKED),
moved AS (UPDATE pawl.job j SET place = CASE WHEN j.waits THEN -1 WHEN j.turn IS NOT NULL AND j.holds IS NULL THEN -2 ELSE 0 END
	FROM due WHERE j.id = due.id RETURNING j.place, j.turn),
noted AS (INSERT INTO pawl.turn (name) SELECT DISTINCT turn FROM moved WHERE place = -2)
SELECT count(*) FROM moved`

	// sqlNext returns the next time at which something falls due.
	sqlNext = `SELECT least(
	(SELECT min(since) FROM pawl.job WHERE place = 1),
	(SELECT min(deadline) FROM pawl.job WHERE place / 3 = 0 AND deadline IS NOT NULL AND token IS NULL),
	(SELECT min(since) FROM pawl.job WHERE place = 4))`

	sqlForget = `DELETE FROM pawl.effect WHERE name IN (
	SELECT name FROM pawl.effect WHERE id IS NULL AND done_until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// The columns of a new job: columns of every job, columns for which most jobs have no value, and columns of jobs with
// tags.
const (
	newColumns       = `id, seq, since, line, place, lane, prio, record, payload`
	newColumnCount   = 9
	extraColumns     = newColumns + `, deadline, effect, key, turn, key_order, holds, cost`
	extraColumnCount = 16
	fairColumns      = extraColumns + `, fair, due`
	fairColumnCount  = 18
)

const (
	sqlAddQueues = `INSERT INTO pawl.queue (name) SELECT DISTINCT ON (n.name) n.name
FROM unnest($1::bytea[]) WITH ORDINALITY AS n(name, place)
WHERE NOT EXISTS (SELECT FROM pawl.queue q WHERE q.name = n.name)
ORDER BY n.name, n.place ON CONFLICT DO NOTHING`

	sqlAddLines = `INSERT INTO pawl.line (queue, kind) SELECT DISTINCT q.id, n.kind
FROM unnest($1::bytea[], $2::bytea[]) AS n(name, kind) JOIN pawl.queue q USING (name)
WHERE NOT EXISTS (SELECT FROM pawl.line l WHERE l.queue = q.id AND l.kind = n.kind)
ORDER BY 1, 2 ON CONFLICT DO NOTHING`

	// sqlSeqs takes the next $1 blocks of sequences.
	sqlSeqs = `SELECT nextval('pawl.seq') FROM generate_series(1, $1::int4)`

	sqlInsert = `INSERT INTO pawl.job (` + newColumns + `)
SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int4[], $5::int2[], $6::int2[], $7::int2[], $8::bytea[], $9::bytea[])`

	sqlInsertExtra = `INSERT INTO pawl.job (` + extraColumns + `)
SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int4[], $5::int2[], $6::int2[], $7::int2[], $8::bytea[], $9::bytea[],
	$10::int8[], $11::bytea[], $12::bytea[], $13::bytea[], $14::int2[], $15::bool[], $16::int2[])`

	sqlInsertFair = `INSERT INTO pawl.job (` + fairColumns + `)
SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int4[], $5::int2[], $6::int2[], $7::int2[], $8::bytea[], $9::bytea[],
	$10::int8[], $11::bytea[], $12::bytea[], $13::bytea[], $14::int2[], $15::bool[], $16::int2[], $17::bytea[], $18::int8[])`

	sqlCopy      = `COPY pawl.job (` + newColumns + `) FROM STDIN (FORMAT binary)`
	sqlCopyExtra = `COPY pawl.job (` + extraColumns + `) FROM STDIN (FORMAT binary)`
	sqlCopyFair  = `COPY pawl.job (` + fairColumns + `) FROM STDIN (FORMAT binary)`

	// sqlUpdate stores jobs at their new places, without a lease.
	sqlUpdate = `UPDATE pawl.job j SET since = t.since, place = t.place, lane = t.lane, holds = t.holds, record = t.record,
	cancelled = false, token = NULL, leased_since = NULL
FROM unnest($1::uuid[], $2::int8[], $3::int2[], $4::int2[], $5::bool[], $6::bytea[]) AS t(id, since, place, lane, holds, record)
WHERE j.id = t.id`

	// sqlUpdateFair is sqlUpdate if some of the jobs have tags, or lose them.
	sqlUpdateFair = `UPDATE pawl.job j SET since = t.since, place = t.place, lane = t.lane, holds = t.holds, record = t.record,
	fair = COALESCE(t.fair, j.fair), due = t.due, cancelled = false, token = NULL, leased_since = NULL
FROM unnest($1::uuid[], $2::int8[], $3::int2[], $4::int2[], $5::bool[], $6::bytea[], $7::bytea[], $8::int8[])
	AS t(id, since, place, lane, holds, record, fair, due)
WHERE j.id = t.id`

	sqlCancel = `UPDATE pawl.job SET cancelled = true WHERE id = ANY($1)`

	// sqlRewrite stores the records of leased jobs.
	sqlRewrite = `UPDATE pawl.job j SET record = t.record FROM unnest($1::uuid[], $2::bytea[]) AS t(id, record) WHERE j.id = t.id`

	sqlTokens = `SELECT id, token, cancelled FROM pawl.job WHERE id = ANY($1) AND token IS NOT NULL`
	sqlDelete = `DELETE FROM pawl.job WHERE id = ANY($1)`

	sqlAddHistory = `INSERT INTO pawl.history (id, n, attempt, at, error, stack)
SELECT * FROM unnest($1::uuid[], $2::int4[], $3::int4[], $4::int8[], $5::bytea[], $6::bytea[])`
	sqlCutHistory    = `DELETE FROM pawl.history h USING unnest($1::uuid[], $2::int4[]) AS t(id, n) WHERE h.id = t.id AND h.n = t.n`
	sqlDeleteHistory = `DELETE FROM pawl.history WHERE id = ANY($1)`

	sqlHold = `INSERT INTO pawl.uniq (name, id) SELECT * FROM unnest($1::bytea[], $2::uuid[]) ORDER BY 1`
	sqlTake = `UPDATE pawl.uniq u SET id = t.id FROM unnest($1::bytea[], $2::uuid[], $3::uuid[]) AS t(name, id, owner)
WHERE u.name = t.name AND u.id = t.owner`
	sqlFree = `DELETE FROM pawl.uniq u USING unnest($1::bytea[], $2::uuid[]) AS t(name, id) WHERE u.name = t.name AND u.id = t.id`

	// sqlStart stores which jobs have effects. If another job got an effect in between, its row stays, and the
	// statement reports fewer rows.
	sqlStart = `INSERT INTO pawl.effect AS e (name, id) SELECT * FROM unnest($1::bytea[], $2::uuid[]) ORDER BY 1
ON CONFLICT (name) DO UPDATE SET id = excluded.id, done_until = 0 WHERE e.id IS NULL AND e.done_until <= $3`

	// A restore during the lease may have stored that the effect is done, until a later time.
	sqlStop = `WITH stopped AS (DELETE FROM pawl.effect WHERE name = ANY($1) AND done_until = 0)
UPDATE pawl.effect SET id = NULL WHERE name = ANY($1) AND done_until > 0`
	sqlDone = `INSERT INTO pawl.effect AS e (name, done_until) SELECT * FROM unnest($1::bytea[], $2::int8[]) ORDER BY 1
ON CONFLICT (name) DO UPDATE SET id = NULL, done_until = greatest(e.done_until, excluded.done_until)`

	sqlUnclaim = `DELETE FROM pawl.claim WHERE token = ANY($1)`
	sqlPause   = `INSERT INTO pawl.queue (name, paused) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused`
	sqlResume  = `UPDATE pawl.queue SET paused = false WHERE name = $1`
)

// linesOf chooses the lines of the queues $1 and the kinds $2, nil for all.
const linesOf = `pawl.queue q JOIN pawl.line l ON l.queue = q.id AND ($2::bytea[] IS NULL OR l.kind = ANY($2))
WHERE q.name = ANY($1)`

// claim stores a fetch, and leases jobs to it.
const claim = `WITH claim AS (INSERT INTO pawl.claim VALUES ($1, $2, $3))
UPDATE pawl.job j SET token = $1, leased_since = $4`

const (
	// sqlPeek locks the first $5 jobs of each line and lane behind the marks. It skips jobs whose effect another job
	// has, and jobs of the keys $12 of the queues $11, which are at their limits. While a repeat suspect is leased, it
	// skips the lanes of repeat suspects.
	sqlPeek = `SELECT q.name, q.line, j.* FROM (SELECT q.id, q.name, l.id AS line FROM ` + linesOf + ` AND NOT q.paused) q
CROSS JOIN unnest($3::int2[]) AS lanes(lane)
LEFT JOIN unnest($6::int4[], $7::int2[], $8::int2[], $9::int8[], $10::int8[]) AS mark(line, lane, prio, since, seq)
	ON mark.line = q.line AND mark.lane = lanes.lane
CROSS JOIN LATERAL (
	SELECT j.id, j.lane, j.prio, j.since, j.seq, j.effect, j.key, j.key_order, j.cost,
		CASE WHEN j.effect IS NOT NULL THEN (SELECT e.done_until > $4 FROM pawl.effect e WHERE e.name = j.effect) END AS done,
		octet_length(j.payload) AS bytes
	FROM pawl.job j
	WHERE j.place = 0 AND j.token IS NULL AND j.line = q.line AND j.lane = lanes.lane
		AND (j.prio, j.since, j.seq) > (COALESCE(mark.prio, -1::int2), COALESCE(mark.since, 0), COALESCE(mark.seq, 0))
		AND (j.deadline IS NULL OR j.deadline > $4)
		AND (j.effect IS NULL OR (SELECT e.id FROM pawl.effect e WHERE e.name = j.effect) IS NULL)
		AND (j.key IS NULL OR (q.name, j.key) NOT IN (SELECT * FROM unnest($11::bytea[], $12::bytea[])))
	ORDER BY j.prio, j.since, j.seq LIMIT $5 FOR UPDATE OF j SKIP LOCKED) j
WHERE lanes.lane < 4 OR NOT EXISTS (SELECT FROM pawl.effect WHERE name = '')`

	// sqlEntries returns how many entries of the index of ready jobs the session has read since it
	// last reported its statistics, which it does between transactions.
	sqlEntries = `SELECT COALESCE(pg_stat_get_xact_tuples_returned('pawl.job_ready'::regclass), 0)`

	// sqlClaim leases jobs that a peek has locked, and returns the columns that the peek did not return.
	sqlClaim = claim + ` WHERE j.id = ANY($3) RETURNING j.id, j.record, j.payload`

	// sqlClaimHeads leases jobs. Jobs that run in order hold their keys after it.
	sqlClaimHeads = claim + `, holds = CASE WHEN j.turn IS NOT NULL THEN true END WHERE j.id = ANY($3) RETURNING j.id, j.record, j.payload`

	// sqlHeld reports whether there is a ready or leased job, or a delayed one that is due by $3. A job that is due now
	// may be late: see fair.go.
	sqlHeld = `SELECT EXISTS (SELECT FROM (SELECT l.id FROM ` + linesOf + `) l, LATERAL (
	(SELECT FROM pawl.job WHERE place = 0 AND line = l.id LIMIT 1) UNION ALL
	(SELECT FROM pawl.job WHERE place < 0 AND line = l.id LIMIT 1) UNION ALL
	(SELECT FROM pawl.job WHERE place = 1 AND line = l.id AND since <= $3 LIMIT 1)) j)`
)
