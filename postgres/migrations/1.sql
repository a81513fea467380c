-- Format 1. Names, kinds, keys and error texts are byte strings in the contract, hence bytea.
-- Times are Unix nanoseconds, saturated; the exact ones are in the record.

CREATE TABLE pawl.meta (
	format int4 NOT NULL
);
INSERT INTO pawl.meta VALUES (1);

-- Each value is the first of a block of sequences, which one transaction has to itself.
CREATE SEQUENCE pawl.seq INCREMENT 1024 START 1024;

CREATE TABLE pawl.queue (
	id     int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name   bytea NOT NULL UNIQUE,
	paused bool NOT NULL DEFAULT false
);

-- The jobs of one kind on one queue.
CREATE TABLE pawl.line (
	id    int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	queue int4 NOT NULL REFERENCES pawl.queue,
	kind  bytea NOT NULL,
	UNIQUE (queue, kind)
);

-- A client of the queue. Every transaction of the client writes its row first: the row is the
-- lease of the process, its fence, and the number of its last commit.
CREATE TABLE pawl.process (
	id         int8 PRIMARY KEY,
	owner      bytea NOT NULL,     -- a later process of the same owner is its successor
	live_until int8 NOT NULL,      -- when its leases are anybody's to take back
	lease      int8 NOT NULL,      -- how far live_until is ahead when the process writes it
	commits    int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The server finds a column faster if those before it have a fixed size and a value. So these columns come first.
CREATE TABLE pawl.job (
	id           uuid PRIMARY KEY,
	seq          int8 NOT NULL,
	since        int8 NOT NULL,    -- ready: since when; delayed: due; dead: when it died; completed: kept until
	line         int4 NOT NULL,
	place        int2 NOT NULL,    -- 0 ready or leased, 1 delayed, 3 dead, 4 completed, -1 ready but waits for others, -2 ready but waits for its turn
	lane         int2 NOT NULL,    -- 2 x crashes in a row, at most 2, + 1 for a retry
	prio         int2 NOT NULL,    -- 127 - priority
	cancelled    bool NOT NULL DEFAULT false,
	record       bytea NOT NULL,   -- driver.AppendRecord without the payload; seq and cancelled are in their columns
	payload      bytea NOT NULL,
	token        int8,             -- of its lease. No index and no predicate of one names it, so that a claim is a HOT update
	leased_since int8,
	deadline     int8,
	effect       bytea,            -- the kind, a zero byte, the idempotency key
	key          bytea,            -- pawl.Envelope.Key
	cost         int2,             -- pawl.Envelope.Cost; NULL for 1
	waits        bool,             -- it has rows in after; NULL if not
	awaited      bool,             -- other jobs may wait for it; NULL if not
	turn         bytea,            -- the queue, a zero byte, the key, if the jobs of the key run in order; NULL if not
	key_order    int2,             -- pawl.KeyOrder, if they do
	holds        bool,             -- it was leased, and no other job of its key runs until it is done; NULL if not
	fair         bytea,            -- the queue, a zero byte, the key, if it has, or had, a tag: since has that while it is ready; NULL if not
	due          int8              -- since when it is ready, if it has a tag; otherwise NULL
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
	autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
	autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
-- A large payload lies outside the row, and an update of the row does not copy it.
ALTER TABLE pawl.job ALTER payload SET STORAGE EXTERNAL;

-- A job that is ready and has nothing else fails the first condition of each of them but job_ready.
CREATE INDEX job_ready    ON pawl.job (line, lane, prio, since, seq)      WHERE place = 0;
CREATE INDEX job_waiting  ON pawl.job (line, lane, prio, since, seq)      WHERE place < 0;
-- The heads of keys, which are the jobs that may run, that run, or that hold their keys, and the jobs that wait for their turn.
CREATE INDEX job_turn     ON pawl.job (turn, place, COALESCE(due, since), seq) WHERE turn IS NOT NULL AND (place = 0 OR place = -2 OR holds);
CREATE INDEX job_listed   ON pawl.job (line, place, since, seq)           WHERE place > 0 AND place <> 4; -- delayed and dead jobs
CREATE INDEX job_due      ON pawl.job (place, since, seq) INCLUDE (line)  WHERE place > 0 AND place <> 3; -- delayed and completed jobs
-- The last tags of keys. Only jobs of queues whose keys take turns are in it.
CREATE INDEX job_fair     ON pawl.job (fair, prio, since)                 WHERE fair IS NOT NULL AND (place = 0 OR place = -2);
-- Of the places -2 to 1. As the server expects few rows of an expression, it reads them in order, and does not sort.
CREATE INDEX job_deadline ON pawl.job (deadline, seq)                     WHERE deadline IS NOT NULL AND place / 3 = 0;

CREATE TABLE pawl.history (
	id      uuid NOT NULL,
	n       int4 NOT NULL,         -- 1 for the first failure of the job
	attempt int4 NOT NULL,
	at      int8 NOT NULL,
	error   bytea NOT NULL,
	stack   bytea NOT NULL,
	PRIMARY KEY (id, n)
);

-- What jobs wait for: the prerequisites that are not met.
CREATE TABLE pawl.after (
	job     uuid NOT NULL,         -- that waits
	needed  uuid NOT NULL,         -- the prerequisite
	any_end bool NOT NULL,         -- a death will do, too
	PRIMARY KEY (job, needed)
);
CREATE INDEX after_needed ON pawl.after (needed, job);

-- What runs noted of themselves, which outlives their jobs until a later store finds it.
CREATE TABLE pawl.progress (
	id    uuid PRIMARY KEY,
	began int8 NOT NULL,           -- of the run
	at    int8 NOT NULL,
	done  int8 NOT NULL,
	total int8 NOT NULL,
	text  bytea NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE pawl.log (
	id      uuid NOT NULL,
	began   int8 NOT NULL,
	attempt int4 NOT NULL,
	head    bytea NOT NULL,        -- the first lines
	tail    bytea NOT NULL,        -- the last lines
	dropped int8 NOT NULL,         -- bytes between them
	PRIMARY KEY (id, began)
);

-- A row for each fetch, not for each job. It goes with the last job of the fetch.
CREATE TABLE pawl.claim (
	token   int8 PRIMARY KEY,
	process int8 NOT NULL,
	ids     uuid[] NOT NULL
);
CREATE INDEX claim_process ON pawl.claim (process);

-- Who holds a unique key: the queue, a zero byte, the kind, a zero byte, the key.
CREATE TABLE pawl.uniq (
	name bytea PRIMARY KEY,
	id   uuid NOT NULL
);

-- Effects under way, which have an ID, and effects that are done until a time. The row of
-- the empty name is held by the leased repeat suspect.
CREATE TABLE pawl.effect (
	name       bytea PRIMARY KEY,
	id         uuid,
	done_until int8 NOT NULL DEFAULT 0
);
CREATE INDEX effect_done ON pawl.effect (done_until) WHERE id IS NULL;

-- The limits of queues, by their names. 0 stands for no limit. A fetch locks the row of its queue.
CREATE TABLE pawl.limits (
	queue           bytea PRIMARY KEY,
	running         int4 NOT NULL,
	running_per_key int4 NOT NULL,
	starts          int4 NOT NULL, -- of the rate of the queue
	per             int8 NOT NULL, -- nanoseconds
	burst           int4 NOT NULL,
	max_cost        int4 NOT NULL,
	key_starts      int4 NOT NULL, -- of the rate of each key
	key_per         int8 NOT NULL,
	key_burst       int4 NOT NULL,
	key_max_cost    int4 NOT NULL,
	in_order        int2 NOT NULL, -- pawl.KeyOrder
	waiting_per_key int4 NOT NULL DEFAULT 0, -- as in bound
	pool            bytea NOT NULL DEFAULT '', -- the name of the pool that it shares with other queues
	pool_running    int4 NOT NULL DEFAULT 0, -- how many jobs of the pool run, as far as the queue is concerned
	pool_since      int8 NOT NULL DEFAULT 0, -- since when a fetch waits for room in the pool
	pool_until      int8 NOT NULL DEFAULT 0, -- until when the other queues of the pool leave room to it
	fair            bool NOT NULL DEFAULT false, -- as in bound
	rests           int8 NOT NULL DEFAULT 0, -- until when no job of the queue starts
	turns           bool NOT NULL  -- jobs of a key run in order, or once did; such a row stays
);
CREATE INDEX limits_pool ON pawl.limits (pool) WHERE pool_running > 0;
-- The pools that queues share, as limits names them. A fetch locks the rows of its pools.
CREATE TABLE pawl.pool (
	name bytea PRIMARY KEY
);
-- What programs declare for queues for which an operator has set other limits, which are those in limits then.
CREATE TABLE pawl.declared (
	queue           bytea PRIMARY KEY,
	running         int4 NOT NULL,
	running_per_key int4 NOT NULL,
	starts          int4 NOT NULL,
	per             int8 NOT NULL,
	burst           int4 NOT NULL,
	max_cost        int4 NOT NULL,
	key_starts      int4 NOT NULL,
	key_per         int8 NOT NULL,
	key_burst       int4 NOT NULL,
	key_max_cost    int4 NOT NULL,
	in_order        int2 NOT NULL,
	waiting_per_key int4 NOT NULL,
	pool            bytea NOT NULL,
	pool_running    int4 NOT NULL,
	fair            bool NOT NULL,
	waiting         int4 NOT NULL  -- as in bound
);
-- What enqueues need to know of limits: the bounds on the waiting jobs of queues, 0 for none, and whether keys take turns.
-- An enqueue into such a queue locks its row.
CREATE TABLE pawl.bound (
	queue   bytea PRIMARY KEY,
	waiting int4 NOT NULL,
	per_key int4 NOT NULL,
	fair    bool NOT NULL
);
-- The fronts of queues whose keys take turns: where the tags of the jobs are that started last.
CREATE TABLE pawl.front (
	queue bytea NOT NULL,
	prio  int2 NOT NULL,
	tag   int8 NOT NULL,
	PRIMARY KEY (queue, prio)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
-- How often rows of bound have changed. Each transaction of a process reads it.
CREATE TABLE pawl.revision (
	bounds int8 NOT NULL
);
INSERT INTO pawl.revision VALUES (0);
-- Keys whose first job may be another one by now. Whoever changes such a job adds a row, and a fetch takes it.
CREATE TABLE pawl.turn (
	name bytea NOT NULL,           -- job.turn
	n    int8 GENERATED ALWAYS AS IDENTITY,
	PRIMARY KEY (name, n)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
	autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
-- Until when starts have used up the rate of a key, or that of the queue in the row of the empty key, and keys rest.
CREATE TABLE pawl.pace (
	queue bytea NOT NULL,
	key   bytea NOT NULL,
	tat   int8 NOT NULL,           -- the theoretical arrival time; see driver.Pace
	rests int8 NOT NULL DEFAULT 0, -- until when no job of the key starts
	PRIMARY KEY (queue, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE INDEX pace_tat ON pawl.pace (tat);

-- The tables of packages that keep rows beside the jobs, and their rows in the order of the bytes.
CREATE TABLE pawl.kv_table (
	id    int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	space bytea NOT NULL,
	name  bytea NOT NULL,
	UNIQUE (space, name)
);
CREATE TABLE pawl.kv (
	tab   int4 NOT NULL,
	key   bytea NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (tab, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
	autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
	autovacuum_vacuum_cost_delay = 0);
