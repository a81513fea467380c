package postgres

// The statements that read the keys of lists. A key is those of queue, priority, time, sequence, and ID that the order
// of the list uses. The other columns say whether the filter matches the job, and how many bytes its parts have. Each
// statement walks an index from the key of the last job. "<after>" and "<order>" stand for the direction, "<onward>"
// for a comparison that includes the key.

const (
	// sizeOfParts is what reading a job costs.
	sizeOfParts = `j.bytes + CASE WHEN @history THEN COALESCE(
	(SELECT sum(40 + octet_length(h.error) + octet_length(h.stack)) FROM pawl.history h WHERE h.id = j.id), 0)::int8 ELSE 0 END`

	// lineFits reports whether a job has the filter's queue and kind.
	lineFits = `EXISTS (SELECT FROM pawl.line l JOIN pawl.queue q ON q.id = l.queue
	WHERE l.id = j.line AND (@queue::bytea IS NULL OR q.name = @queue) AND (@kind::bytea IS NULL OR l.kind = @kind))`

	sqlKeysByID = `SELECT 0, 0, 0, 0, j.id, (@place::int2 IS NULL OR greatest(j.place, 0) = @place)
	AND (@leased::bool IS NULL OR (j.token IS NOT NULL) = @leased) AND ` + lineFits + `, ` + sizeOfParts + `
FROM (SELECT id, place, token, line, octet_length(payload) AS bytes FROM pawl.job
	WHERE id <after> @id ORDER BY id <order> LIMIT @limit) j
ORDER BY j.id <order>`

	// keysOfLane reads ready jobs of a lane, and keysOfWaiting reads ready jobs that wait for other jobs, or for their
	// turn.
	keysOfLane    = `SELECT prio, since, seq, id, token IS NULL AS free, octet_length(payload) AS bytes FROM pawl.job WHERE place = 0 AND ` + afterKey
	keysOfWaiting = `SELECT prio, since, seq, id, true, octet_length(payload) FROM pawl.job WHERE place < 0 AND ` + afterKey
	afterKey      = `line = l.id AND lane = n.lane AND (prio, since, seq) <after>
			(CASE WHEN q.id = @at THEN @prio::int2 ELSE @first_prio END,
			CASE WHEN q.id = @at THEN @since::int8 ELSE @first_since END,
			CASE WHEN q.id = @at THEN @seq::int8 ELSE @first_seq END)
		ORDER BY prio <order>, since <order>, seq <order> LIMIT @limit`

	sqlKeysOfReady = `SELECT q.id, j.prio, j.since, j.seq, j.id, j.free, ` + sizeOfParts + `
FROM pawl.queue q, LATERAL (
	SELECT j.* FROM pawl.line l, unnest('{0,1,2,3,4,5}'::int2[]) AS n(lane), LATERAL (
		(` + keysOfLane + `) UNION ALL (` + keysOfWaiting + `)) j
	WHERE l.queue = q.id AND (@kind::bytea IS NULL OR l.kind = @kind)
	ORDER BY j.prio <order>, j.since <order>, j.seq <order> LIMIT @limit) j
WHERE q.id <onward> @at AND (@queue::bytea IS NULL OR q.name = @queue)
ORDER BY q.id <order>, j.prio <order>, j.since <order>, j.seq <order> LIMIT @limit`

	sqlKeysOfDead = `SELECT q.id, 0, j.since, j.seq, j.id, true, ` + sizeOfParts + `
FROM pawl.queue q, LATERAL (
	SELECT j.* FROM pawl.line l, LATERAL (
		SELECT since, seq, id, octet_length(payload) AS bytes FROM pawl.job
		WHERE place = 3 AND line = l.id AND since BETWEEN @died_since AND @died_before AND (since, seq) <after>
			(CASE WHEN q.id = @at THEN @since::int8 ELSE @first_since END,
			CASE WHEN q.id = @at THEN @seq::int8 ELSE @first_seq END)
		ORDER BY since <order>, seq <order> LIMIT @limit) j
	WHERE l.queue = q.id AND (@kind::bytea IS NULL OR l.kind = @kind)
	ORDER BY j.since <order>, j.seq <order> LIMIT @limit) j
WHERE q.id <onward> @at AND (@queue::bytea IS NULL OR q.name = @queue)
ORDER BY q.id <order>, j.since <order>, j.seq <order> LIMIT @limit`

	// sqlKeysByTime lists the delayed jobs, or the dead ones, of all queues by their times.
	sqlKeysByTime = `SELECT 0, 0, j.since, j.seq, j.id, true, ` + sizeOfParts + `
FROM pawl.queue q JOIN pawl.line l ON l.queue = q.id, LATERAL (
	SELECT since, seq, id, octet_length(payload) AS bytes FROM pawl.job
	WHERE place = <place> AND line = l.id AND (<place> = 1 OR since BETWEEN @died_since AND @died_before)
		AND (since, seq) <after> (@since, @seq)
	ORDER BY since <order>, seq <order> LIMIT @limit) j
WHERE (@queue::bytea IS NULL OR q.name = @queue) AND (@kind::bytea IS NULL OR l.kind = @kind)
ORDER BY j.since <order>, j.seq <order> LIMIT @limit`

	sqlKeysOfCompleted = `SELECT 0, 0, j.since, j.seq, j.id, ` + lineFits + `, ` + sizeOfParts + `
FROM (SELECT since, seq, id, line, octet_length(payload) AS bytes FROM pawl.job
	WHERE place = 4 AND (since, seq) <after> (@since, @seq) ORDER BY since <order>, seq <order> LIMIT @limit) j
ORDER BY j.since <order>, j.seq <order>`

	// sqlKeysOfLeased reads the claims, since no index has the leases.
	sqlKeysOfLeased = `SELECT 0, 0, j.since, j.seq, j.id, ` + lineFits + `, ` + sizeOfParts + `
FROM (SELECT j.leased_since AS since, j.seq, j.id, j.line, octet_length(j.payload) AS bytes
	FROM pawl.claim c, unnest(c.ids) AS leased(id) JOIN pawl.job j USING (id)
	WHERE j.token = c.token AND (j.leased_since, j.seq) <after> (@since, @seq)
	ORDER BY j.leased_since <order>, j.seq <order> LIMIT @limit) j
ORDER BY j.since <order>, j.seq <order>`
)
