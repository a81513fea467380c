-- Format 1. Names, kinds, keys and error texts are byte strings in the contract, hence BLOB. Times
-- are Unix nanoseconds, saturated; the exact ones are in the record.

CREATE TABLE pawl_meta (
	format INTEGER NOT NULL,
	seq    INTEGER NOT NULL          -- the last sequence that was given out
);
INSERT INTO pawl_meta VALUES (1, 0);

CREATE TABLE pawl_queue (
	id     INTEGER PRIMARY KEY,
	name   BLOB NOT NULL UNIQUE,
	paused INTEGER NOT NULL DEFAULT 0
);

-- The jobs of one kind on one queue.
CREATE TABLE pawl_line (
	id    INTEGER PRIMARY KEY,
	queue INTEGER NOT NULL,
	kind  BLOB NOT NULL,
	UNIQUE (queue, kind)
);

-- The sequence is the rowid, which ends each index, so every order ends with the sequence. The
-- columns that a claim changes keep their sizes: SQLite then writes only the page of the row, and not
-- those of a large payload.
CREATE TABLE pawl_job (
	seq          INTEGER PRIMARY KEY,
	id           BLOB NOT NULL UNIQUE,
	line         INTEGER NOT NULL,
	place        INTEGER NOT NULL,   -- 1 ready, but waits for others, 2 ready, 3 delayed, 4 leased, 5 dead, 6 completed
	lane         INTEGER NOT NULL,   -- 2 x crashes in a row, at most 2, + 1 for a retry
	prio         INTEGER NOT NULL,   -- 127 - priority
	since        INTEGER NOT NULL,   -- ready: since when; delayed: due; dead: when it died; completed: kept until
	deadline     INTEGER,
	token        INTEGER NOT NULL,   -- of its lease
	leased_since INTEGER NOT NULL,
	cancelled    INTEGER NOT NULL,
	effect       BLOB,               -- the kind, a zero byte, the idempotency key
	record       BLOB NOT NULL,      -- driver.AppendRecord without the payload; seq and cancelled are in their columns
	payload      BLOB NOT NULL
);
CREATE INDEX pawl_job_ready     ON pawl_job (line, lane, prio, since) WHERE place = 2;
CREATE INDEX pawl_job_waiting   ON pawl_job (line, lane, prio, since) WHERE place = 1;
CREATE INDEX pawl_job_delayed   ON pawl_job (line, since)             WHERE place = 3;
CREATE INDEX pawl_job_due       ON pawl_job (since)                   WHERE place = 3;
CREATE INDEX pawl_job_leased    ON pawl_job (line, leased_since)      WHERE place = 4;
CREATE INDEX pawl_job_dead      ON pawl_job (line, since)             WHERE place = 5;
CREATE INDEX pawl_job_completed ON pawl_job (since, seq, line)        WHERE place = 6;
CREATE INDEX pawl_job_deadline  ON pawl_job (deadline)                WHERE place < 4 AND deadline IS NOT NULL;

CREATE TABLE pawl_history (
	seq     INTEGER NOT NULL,        -- of the job
	n       INTEGER NOT NULL,        -- 1 for the first failure of the job
	attempt INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	error   BLOB NOT NULL,
	stack   BLOB NOT NULL,
	PRIMARY KEY (seq, n)
) WITHOUT ROWID;

-- What jobs wait for: the prerequisites that are not met.
CREATE TABLE pawl_after (
	job     BLOB NOT NULL,           -- that waits
	needed  BLOB NOT NULL,           -- the prerequisite
	any_end INTEGER NOT NULL,        -- a death will do, too
	PRIMARY KEY (job, needed)
) WITHOUT ROWID;
CREATE INDEX pawl_after_needed ON pawl_after (needed, any_end);

-- Who holds a unique key: the queue, a zero byte, the kind, a zero byte, the key.
CREATE TABLE pawl_uniq (
	name BLOB PRIMARY KEY,
	seq  INTEGER NOT NULL
) WITHOUT ROWID;

-- Effects that are done until a time.
CREATE TABLE pawl_effect (
	name       BLOB PRIMARY KEY,
	done_until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX pawl_effect_done ON pawl_effect (done_until);

-- The tables of packages that keep rows beside the jobs, and their rows in the order of the bytes.
CREATE TABLE pawl_kv_table (
	id    INTEGER PRIMARY KEY,
	space BLOB NOT NULL,
	name  BLOB NOT NULL,
	UNIQUE (space, name)
);
CREATE TABLE pawl_kv (
	tab   INTEGER NOT NULL,
	key   BLOB NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (tab, key)
) WITHOUT ROWID;
