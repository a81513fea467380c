package postgres

// Session returns the settings of the scheduler's session.
func Session() (string, error) {
	opts, err := (*Options)(nil).withDefaults()
	return opts.session(), err
}

// Hot are the statements that every process repeats, with the types of their parameters.
var Hot = []struct{ Name, Types, Statement string }{
	{"fence", "int8, int8, int8, int8", sqlFence},
	{"load", "uuid[]", sqlLoad},
	{"holders", "bytea[]", sqlHolders},
	{"expired", "int8, int8", sqlExpired},
	{"retained", "int8, int8", sqlRetained},
	{"promote", "int8, int8", sqlPromote},
	{"next", "", sqlNext},
	{"forget", "int8, int8", sqlForget},
	{"update", "uuid[], int8[], int2[], int2[], bool[], bytea[]", sqlUpdate},
	{"cancel", "uuid[]", sqlCancel},
	{"tokens", "uuid[]", sqlTokens},
	{"delete", "uuid[]", sqlDelete},
	{"free", "bytea[], uuid[]", sqlFree},
	{"take", "bytea[], uuid[], uuid[]", sqlTake},
	{"dependents", "uuid[]", sqlDependents},
	{"held up", "uuid[]", sqlHeldUp},
	{"needed", "uuid[]", sqlNeeded},
	{"awaited", "uuid[]", sqlAwaited},
	{"add prerequisites", "uuid[], uuid[], bool[]", sqlAddNeeded},
	{"meet", "uuid[], uuid[]", sqlMeet},
	{"release", "uuid[]", sqlRelease},
	{"forget prerequisites", "uuid[]", sqlForgetNeeded},
	{"mark waiting", "uuid[]", sqlMarkWaiting},
	{"mark awaited", "uuid[]", sqlMarkAwaited},
	{"mark named", "uuid[]", sqlMarkNamed},
	{"unclaim", "int8[]", sqlUnclaim},
	{"orphans", "int8[], int8, int8", sqlOrphans},
	{"peek", "bytea[], bytea[], int2[], int8, int8, int4[], int2[], int2[], int8[], int8[], bytea[], bytea[]", sqlPeek},
	{"lock limits", "bytea[]", sqlLockLimits},
	{"leased keys", "bytea[]", sqlLeasedKeys},
	{"paces", "bytea[], int8", sqlPaces},
	{"set paces", "bytea[], bytea[], int8[]", sqlSetPaces},
	{"forget paces", "int8, int8", sqlForgetPaces},
	{"orders", "bytea[]", sqlOrders},
	{"take turns", "bytea[], int8", sqlTakeTurns},
	{"heads", "bytea[]", sqlHeads},
	{"set heads", "uuid[], int2[], bool[]", sqlSetHeads},
	{"adopt", "uuid[], bytea[], int2[]", sqlAdopt},
	{"end turns", "bytea[]", sqlEndTurns},
	{"claim", "int8, int8, uuid[], int8", sqlClaim},
	{"held", "bytea[], bytea[], bool", sqlHeld},
	{"delete history", "uuid[]", sqlDeleteHistory},
	{"store logs", "uuid[], int8[], int4[], bytea[], bytea[], int8[]", sqlStoreLogs},
	{"cut logs", "uuid[]", sqlCutLogs},
	{"store progress", "uuid[], int8[], int8[], int8[], int8[], bytea[]", sqlStoreProgress},
	{"noted", "uuid[], uuid, int8", sqlNoted},
	{"remove logs", "uuid[]", sqlRemoveLogs},
	{"remove progress", "uuid[]", sqlRemoveProgress},
}
