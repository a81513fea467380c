package pawl

import "github.com/gopawl/pawl/internal/bridge"

// What only engines need is reached through package driver.
func init() {
	bridge.Root = bridge.Functions[Envelope, Lease, Policy, Queue]{
		CheckEnvelope: (*Envelope).validate,
		CheckName:     checkName,
		CheckPolicy:   checkPolicy,
		NextAttempt:   nextAttempt,

		AppendRecord: appendRecord,
		ParseRecord:  parseRecord,
		CheckRecord:  checkRecord,

		EncodePayload: encodePayload,
		DecodePayload: decodePayload,

		RunContext:  runContext,
		Note:        (*Lease).note,
		MarkSettled: (*Lease).markSettled,
		Settled:     (*Lease).isSettled,
	}
}
