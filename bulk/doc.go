// Package bulk imports orders for many samples that already exist. The import can be interrupted at
// any point and resumed.
//
//	journal, err := bulk.OpenFile("run.journal")
//	…
//	defer journal.Close()
//	opts := bulk.Options{Target: baseURL}
//	report, err := bulk.Run(ctx, client, bulk.JSONLines(file), journal, opts)
//
// [JSONLines] reads import requests as JSON, [CSV] reads spreadsheets with columns, dates and user
// IDs of other systems, and your own [Source] can read anything else. [Users] finds or creates
// users by your IDs.
//
// POST /v3/order/import takes one order per request and has no idempotency key. [Run] keeps a
// [Journal] instead: it writes an entry before it sends a record (one request), and then the
// outcome. When Run is called again with the same journal and source, it skips finished records and
// continues. The sample ID identifies a record: Run never creates two orders for one sample ID, and
// its [Report] counts every record of the source.
//
// # What happens to a record
//
// Run first reads the source to check it. It does not send records that cannot be read, that
// violate the interface specification, or that share their sample ID with a different record. Then
// it reads the source again and sends the records, several at a time. The outcome of an attempt
// ([labhealth.OutcomeOf]) decides what follows:
//
//	applied           the record is done
//	429               all workers pause as long as the service asks, then the record is sent again
//	not sent          the record is sent again, after a pause
//	rejected          the record is reported, and not sent again unless it is changed or
//	                  Options.RetryRejected is set
//	other 4xx, 3xx    the run stops, and the next one sends the record again
//	unknown           Run looks for the order: see Unknown outcomes
//
// A rejection is a 400, 404, 409 or 422 for which [labhealth.APIError.FromService] is true. Any
// other 4xx or 3xx says nothing about the record: the key or the base URL is wrong, or a proxy,
// gateway or firewall responded. The error names the record: a firewall, for example, may block
// only this one.
//
// A run stops too if its first records are all rejected with one status and without field errors:
// the base URL may be wrong, or the team may not be allowed to import. It also stops if several
// records in a row are rejected for the same field: all may have the same invalid value. None of
// them is recorded as rejected. See [Options.RejectionLimit], also for a file in which every record
// is invalid by itself.
//
// # Unknown outcomes
//
// An attempt whose response was lost, or that was in progress when the process was killed, may have
// created its order. Run sends such a record again only if the full list of orders, read twice,
// shows no order. The list is first read at least [Options.Settle] after the attempt. The time is
// measured with a monotonic clock, so a wrong or adjusted wall clock has no effect. [Report.Waited]
// and [Progress] show how long a run waits, and for what.
//
// A resumed run reads the list of orders at once, and records the orders that exist as applied.
// Records that a killed run had not sent are sent at once too: a journal [File] marks a record just
// before it is sent, and the mark survives the process.
//
// For the remaining records the run waits for [Options.Settle] after its start. On Linux, if the
// system was not restarted, it counts from about [Options.Timeout] after the kill, but waits at
// least 10 seconds. Clones of a running machine must not share a journal.
//
// An order of the same user with the same sample ID means that the record is applied, one of
// another user that it is rejected. The outcome stays unknown if a list is incomplete, lacks an
// applied order, or hides the sample ID of an order of the user. So it does if a response has the
// order of another record or user. Then the record is reported, and the next run tries again.
//
// Records are looked up even if the source has changed. If a record was changed, is invalid, a
// duplicate or gone, any user's order with its sample ID is enough: it is reported as applied, or
// as [Report].Changed.
//
// Sample IDs that differ only in case, or in leading or trailing spaces, are treated as equal,
// because a service may change these. It may also normalize Unicode, which makes different IDs look
// the same. Therefore a sample ID may have only ASCII characters and letters in composed form
// (NFC): a combining accent or a full-width digit makes a record invalid.
//
// # Damaged journals
//
// [OpenFile] returns an error for a journal that is damaged in the middle. A truncated or restored
// journal looks like that of an interrupted run: the records that it lacks would be sent again.
// That is why a resumed run first reads the list of orders. If the list cannot be read in full, it
// sends nothing, unless [Options.TrustJournal] is set. If the end of the file is damaged, the run
// waits for [Options.Settle] and reads the list again before it sends a record without an order. (A
// last line cut off by a kill is no damage, unless the system restarted.) If the file is truncated
// or restored while attempts of a killed run are in progress, only the uniqueness of sample IDs
// prevents a second order.
//
// If the journal is lost, set [Options.Reconcile]. That run can be interrupted and resumed too.
//
// # Uniqueness of sample IDs
//
// The public API reference says that sample IDs are unique. The interface specification does not,
// and neither gives a status for a duplicate sample ID, so Run does not interpret the message of a
// rejection. If a record is rejected after an attempt with an unknown outcome, for any reason, Run
// reads the lists again. If they show the record's order, it is applied; otherwise the rejection
// stands. A record that is rejected in its first attempt is recorded as rejected, even if the
// reason is an order that someone else imported.
//
// Uniqueness also protects against an attempt that takes effect later than [Options.Settle]: the
// service rejects the second order.
//
// # Costs
//
// A resumed run that has anything to send makes one request per 100 orders of the team, or of those
// that [Options.List] selects. With the embedded service, listing 10,000 orders took 1.3 seconds,
// and importing them took 9 seconds.
//
// Run takes 24 to 48 bytes of memory per record, and up to 100 bytes more per sample ID that
// different records share; nothing else grows with the source. Up to 10,000 rejections are in
// memory at once. The journal is synced once per batch of up to 256 records, and once a second
// while records are sent.
//
// [Users] takes some 210 bytes for each user. With 16 requests at once and 100 milliseconds of
// latency, it created 10,000 users in 64 seconds, and found them in 2.5 seconds in the next run.
//
// # Stored data
//
// The journal and the rejections contain sample IDs, order IDs, paths and codes of problems, and
// names of columns. They contain no other value of a record, unless [Options.KeepMessages] is set:
// the service's texts may have patient data. The journal also has digests of records: see
// [Entry.Digest].
package bulk
