// Package bulk imports many orders that exist already, in a way that can be killed at any moment and go on later.
//
//	journal, err := bulk.OpenFile("run.journal")
//	…
//	defer journal.Close()
//	report, err := bulk.Run(ctx, client, bulk.JSONLines(file), journal, bulk.Options{Target: baseURL})
//
// POST /v3/order/import takes one order at a time and has no idempotency key. [Run] makes up for that with a [Journal]: it writes
// down what it is about to send before it sends it, and what became of it afterwards. Started again with the same journal and
// source, it skips what is done and goes on. The identity of a record is its sample id: there are never two orders for one sample
// id, and every record of the source is counted by the [Report].
//
// # What happens to a record
//
// The source is read once to check it: records that cannot be read, that break a rule of the interface, or that share their
// sample id with a different record are not sent. Then it is read again and sent, a few at a time. What an attempt came to
// decides what is next ([labhealth.OutcomeOf]):
//
//	applied           done
//	429               all workers wait as long as the service asks, then the record is sent again
//	not sent          a pause, then it is sent again
//	other rejection   reported, and not sent again unless the record is changed or Options.RetryRefused is set
//	401, 403, 3xx     the run ends: all records would fare alike
//	unknown           it is found out first; see below
//
// A run whose first records are all rejected with one status and without field errors ends with an
// error, and none of them is recorded as rejected: that is what a wrong base URL looks like, or a
// team that may not import. See [Options.RejectionLimit], also for a file of which every record is
// at fault.
//
// # Unknown outcomes
//
// An attempt that was lost on its way back, or that was under way when the process was killed, may
// have created its order. Such a record is not sent again before the list of orders was read twice,
// in full, the first time at least [Options.Settle] after the attempt. The attempts of earlier runs
// count as made when this run started, and the time is measured by a monotonic clock: a wall clock
// that is wrong or set changes nothing. The lists are compared here: an order of the same user with
// the same sample id means that the record is applied, one of another user that it is rejected. If
// both lists show none, it is sent again.
// If a list cannot be read in full, or has orders that do not show their sample id, the record is
// not certain: it stays as it is, is reported, and the next run tries again.
//
// This holds whatever the source has become. If the row was changed, is invalid, shares its sample
// id with another one, or is gone, an order of any user with the sample id counts, and the record
// is reported as applied or changed if there is one.
//
// Sample ids that differ only in case, or in spaces at their ends, are one sample id: a service may
// change either.
//
// # Journals that are not whole
//
// A journal that is damaged in its middle returns an error. One that was cut, or restored from a
// copy, looks like that of a run that was interrupted, and what it has lost would be sent again. So
// a resumed run reads the list of orders once before it sends anything, and records what is there
// as applied; if the list cannot be read in full, nothing is sent ([Options.TrustJournal] is the
// exception). Nothing helps if the file is deleted, or cut while attempts of a killed run are still
// in flight, but that sample ids are unique.
//
// Sample ids are unique: the public reference says so, the interface document does not, and neither gives a status for one that
// is taken, so that no answer is recognised by its text. If a record whose outcome was unknown before is refused, whatever the
// reason, the lists are read again: an order of the same user with the same sample id means applied, otherwise the refusal
// stands. A record that is refused in its first attempt is refused, also if the reason is an order that somebody else imported.
//
// Uniqueness is the safety net under the lists: an attempt that takes effect later than [Options.Settle] cannot make a second
// order, because the service refuses it.
//
// # What it costs
//
// A resumed run costs a request for each 100 orders of the account, or of what [Options.List]
// narrows it to, if it has anything to send. With the embedded service 10,000 orders took 1.3
// seconds, beside 9 for their import.
//
// The index takes 24 to 48 bytes of memory for each record, and nothing else grows with the source. The journal is synced for
// groups of records; a group is a few for each worker if the service is slow, and up to 256 if it is fast.
//
// # What is kept
//
// The journal and the file of refusals hold sample ids, order ids, and paths and codes of what was wrong. They hold no other
// value of a record. See [Entry.Digest] for what can be learnt from the journal.
package bulk
