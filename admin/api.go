package admin

import "time"

// The API, in version 1. A body is JSON, and so is an answer but that of a backup; an error
// is {"error":{"code":…,"message":…}}.
//
//	GET  /v1/stats
//	GET  /v1/jobs            a page; the parameters are those of [Query], see query.go
//	GET  /v1/jobs/{id}
//	GET  /v1/ids?part=       the IDs that begin or end so
//	POST /v1/jobs            {"jobs":[…]}: enqueue
//	POST /v1/jobs/do         {"verb":…,"ids":[…]}: an action
//	GET  /v1/dead/summary    a page; the parameters of a list, and by=
//	POST /v1/queues/pause    {"queue":…}
//	POST /v1/queues/resume   {"queue":…}
//	POST /v1/reap
//	GET  /v1/effects?after=
//	POST /v1/restore         {"jobs":[…],"effects":[…]}
//	POST /v1/check           lines of progress, and a last one that says how it ended
//	GET  /v1/backup          the bytes of the file, and a trailer that says how many
//	GET  /v1/events          lines of events
//
//	GET  /v1/workflows            a page of runs; see workflow_wire.go
//	GET  /v1/workflows/count      how many runs have which status
//	GET  /v1/workflows/find       the run of flow= and id=
//	GET  /v1/workflows/show       a run with its journal; id= and depth=info, journal or values
//	POST /v1/workflows/signal     {"run":…,"name":…,"payload":…,"dedup":…}
//	POST /v1/workflows/cancel     {"run":…,"reason":…}; terminate too
//	POST /v1/workflows/pause      {"run":…}; resume and verify too
//	POST /v1/workflows/fork       {"run":…,"from":…,"new_id":…}
//	POST /v1/workflows/prune      {"before":…}: for some seconds, until there is no more
//	GET  /v1/workflows/rows       a part of what is stored of a run; id= and after=
//	POST /v1/workflows/restore    {"parts":[…]}: such parts
//
// Whoever changes what a field means, or drops one, raises the version and the paths.
const (
	apiVersion    = "1"
	versionHeader = "Pawl-Admin"

	pathStats   = "/v1/stats"
	pathJobs    = "/v1/jobs"
	pathIDs     = "/v1/ids"
	pathDo      = "/v1/jobs/do"
	pathSummary = "/v1/dead/summary"
	pathPause   = "/v1/queues/pause"
	pathResume  = "/v1/queues/resume"
	pathReap    = "/v1/reap"
	pathEffects = "/v1/effects"
	pathRestore = "/v1/restore"
	pathCheck   = "/v1/check"
	pathBackup  = "/v1/backup"
	pathEvents  = "/v1/events"

	pathWorkflows         = "/v1/workflows"
	pathWorkflowCount     = "/v1/workflows/count"
	pathWorkflowFind      = "/v1/workflows/find"
	pathWorkflowShow      = "/v1/workflows/show"
	pathWorkflowSignal    = "/v1/workflows/signal"
	pathWorkflowCancel    = "/v1/workflows/cancel"
	pathWorkflowTerminate = "/v1/workflows/terminate"
	pathWorkflowPause     = "/v1/workflows/pause"
	pathWorkflowResume    = "/v1/workflows/resume"
	pathWorkflowFork      = "/v1/workflows/fork"
	pathWorkflowVerify    = "/v1/workflows/verify"
	pathWorkflowPrune     = "/v1/workflows/prune"
	pathWorkflowRows      = "/v1/workflows/rows"
	pathWorkflowRestore   = "/v1/workflows/restore"
)

// Of a backup: how large the file is about when it begins, for a progress bar, and the
// trailer with the bytes that were sent, which a cut stream does not have.
const (
	sizeHeader     = "Pawl-Backup-Size"
	writtenTrailer = "Pawl-Backup-Bytes"
)

// heartbeat is how often a stream says that it is alive.
const heartbeat = 15 * time.Second
