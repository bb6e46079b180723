// Package sqlstore stores the latest version of every summary, every sample and every order in
// SQLite or PostgreSQL, using database/sql and a driver of the program's choice. It is the
// persistent counterpart of [webhooks.Latest], for programs that must not lose data in a crash or
// that run several processes. It also stores deliveries before they are acknowledged, and applies
// them afterwards.
//
// # Quick start
//
//	db, err := sql.Open("pgx", "postgres://…") // any driver
//	…
//	store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
//	…
//	err = store.Migrate(ctx) // creates or updates the tables
//	…
//	handler, err := webhooks.NewRawHandler(verifier, store.Receive) // stores deliveries in the inbox
//	…
//	worker := &sqlstore.Worker{Store: store}
//	go worker.Run(ctx) // applies deliveries from the inbox
//	…
//	for s, err := range store.UserSamples(ctx, userID, "heartrate", from, to) {
//		…
//	}
//
// A program that receives deliveries from a broker applies them itself, many at a time: see
// [Store.ApplyAll].
//
// # Guarantees
//
//   - Applying the same deliveries, in any order, with repetitions, from any number of processes
//     and to either database, gives the content that [webhooks.Latest] would have: the latest
//     receipt wins, the later element within a batch, and the greater JSON among equal versions.
//     The hazards of that rule are described there. [webhooks.Changes] are exact.
//   - Of an order, the version wins that is the latest by the service's own clock: the greatest of
//     updated_at and the times of its events. A clock of the receivers decides only between
//     versions with the same time, and the greater JSON between those that were received at the
//     same time. Events and reads are made by the service, so its clock compares both, while the
//     time of receipt says nothing about an old event that is delivered again after a newer read.
//     A version without any time, such as the response of an update, loses to every other.
//   - [Store.Timeline] has every entry of any version of an order that was ever applied, each once,
//     whatever came double, late, or not at all as an event of its own. [Applied] counts new ones.
//   - A delivery that [Store.Receive] has accepted is applied once. It survives a crash of the
//     process, and of the database if commits are durable. What [Worker.Apply] writes in its
//     transaction is also written once. Its other effects, such as sending a message, can be
//     repeated after a crash.
//   - Deliveries of one user are applied one at a time, across all processes; those of different
//     users are applied concurrently. The package's own transactions take their locks in one order,
//     so they do not deadlock.
//   - A delivery that cannot be read or applied completely is stored in the table
//     labhealth_dead_letters with a reason, and does not delay others. The readable part of it is
//     applied. Monitor that table: it shows when the service changes the format of its events.
//     After an update of the program, [Store.Requeue] moves such deliveries back.
//   - The inbox is drained at one speed: delayed deliveries at its head cost nothing, and deleted
//     ones that an old snapshot of another session keeps cost about a tenth. [Worker] states how
//     late a delivery can be found for that reason. [Store.Backlog] counts what waits, at a bounded
//     cost.
//   - The deliveries of a batch that takes too long are tried again one at a time. One that takes
//     too long alone becomes a dead letter after [Worker].Attempts. The other batches go on.
//   - Nothing is lost: a sample that does not fit the numeric columns, such as a number with more
//     digits than a double has, is stored as JSON, and so is every summary.
//
// Not guaranteed:
//
//   - The order of deliveries. A function that needs the versions of a summary in order must
//     compare updated_at.
//   - Synchronized clocks. Versions of summaries and samples are ordered by the clocks of the
//     machines that received them.
//     Data received by a machine whose clock is an hour behind loses against what others received
//     within that hour. Keep clocks synchronized, and set [Store.Version] if the data contains a
//     version.
//   - Permanent deletion: see [Store.DeleteUser].
//   - Recovery from the loss of committed data, in a failover to a standby that was behind or a
//     restore of an older backup: lost deliveries are not sent again. Restart programs that only
//     read, because they cache rows of labhealth_shapes, whose IDs may have been reused. Programs
//     that write detect this.
//   - Infinities and NaN, which JSON does not have: a sample that a program creates with such a
//     value is invalid, and its delivery is not applied.
//
// # Reactions
//
// A program that acts on a change, such as to notify a patient when results are there, selects the
// kinds of changes and runs a [Reactor]:
//
//	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults}
//	reactor := &sqlstore.Reactor{Store: store, React: notify}
//	go reactor.Run(ctx)
//
// A reaction is queued in the transaction of the change, so there is one for each change that was
// committed, and none for others: one for each status that an order reaches, for each change of
// stored results, for each summary that was added or updated, and for the samples of each series
// that a transaction has added or updated. It is called after the commit, at least once, with an ID
// that is the same in each call. See [Reactor] for the order of calls and for failures. If the user
// is deleted, so are the user's reactions.
//
// Events of orders have no results: a [Reconciler] or [Store.ApplyResults] stores them, and without
// these ReactResults has no reactions. Partial results, final ones and each correction are changes
// with different IDs, and React reads the latest state, so a reaction to partial results can find
// final ones. To notify once for each order, use OrderID as the key.
//
// Whatever a Reconciler finds is a change too. To fill a new database without reactions to old
// orders, call [Reconciler.Since] with the zero time and a Store that has no Reactions, before
// other processes write to the database.
//
// A function that kills its process, by os.Exit, a fatal error of the runtime or too much memory,
// has not failed: no attempt is counted, so the reaction is never given up. It is called again when
// its lease has ended, after twice [Reactor].Timeout, and kills the next process. The calls in
// flight in that process are also repeated then. Processes that are restarted call the other
// reactions in between. Run a function that may do so in a process of its own.
//
// Leases and delays use the clocks of the machines. One that is an hour ahead calls what others are
// calling, with the same ID, and what it has taken when it is killed waits up to an hour longer.
//
// Nothing is queued by default, and what is queued waits until a Reactor runs. [Store.Backlog]
// counts it.
//
// # Databases
//
// PostgreSQL 12 or newer. Tested: PostgreSQL 15 with github.com/jackc/pgx/v5/stdlib and
// github.com/lib/pq. No extensions are needed. A connection pooler in transaction mode works if it
// supports prepared statements or if the driver does not use them (with pgx,
// default_query_exec_mode=exec in the connection string). Transactions use READ COMMITTED,
// regardless of the default isolation level. A transaction takes 4 to 8 statements, however many
// samples it has, and up to 4 more if it has orders, and their plans use the indexes whether or not
// the tables were analyzed. A sample takes about 100 bytes of table and index if the samples of a
// series arrive in order, and 8 more if it is an interval of an uncommon length. The space of
// replaced versions is reused after a VACUUM. The write-ahead log takes several times as much if
// each delivery has one sample: docs/scaling.md states how much, and which settings of the server
// reduce it.
//
// With PostgreSQL the samples are partitioned by time, so that deleting old ones drops a table. See
// [Store.Keep] and [Store.Maintain], which makes and drops the partitions. Months without one are
// in the default partition: no sample is rejected for want of a partition. New samples cost the
// same with any number of partitions. For those that are stored already, 60 partitions cost up to
// 5 % and 200 up to 13 % of the server's time. A transaction of a driver that prepares statements
// can lock every partition: max_locks_per_transaction times max_connections must exceed the number
// of partitions times that of connections. The package does not need pg_partman, which is an
// extension that a managed service may lack and needs a job of its own. Partitions that a database
// administrator makes, with pg_partman or by hand, are used as they are.
//
// The encoding of the database must be UTF8. After a failover, a session of the old primary may
// stay connected and be read-only: such a session leaves the pool with its first write, which
// fails. One that nobody writes with stays, as does one of a server that does not respond anymore,
// so limit the life of sessions too: db.SetConnMaxLifetime(5 * time.Minute).
//
// SQLite 3.35 or newer, in a file. Tested: modernc.org/sqlite. Its connections should have
//
//	PRAGMA journal_mode = WAL     -- readers and the writer do not wait for each other
//	PRAGMA busy_timeout = 10000   -- wait for other processes
//	PRAGMA synchronous = FULL     -- a commit is synced to the disk
//
// With modernc.org/sqlite these are parameters of the file name:
//
//	file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)
//
// With WAL and FULL, a delivery is acknowledged only after it was synced, even if a process that
// was killed had written it before. So it survives a power failure if the disk honors the sync, and
// if the directory of the file is durable itself. The module integration kills processes and cuts
// the power of a simulated disk, and loses nothing with these settings. With synchronous = NORMAL
// or OFF, and on a disk that ignores syncs, the same tests lose acknowledged deliveries. With
// another journal mode, the last commits may be lost too.
//
// SQLite has one writer at a time. The goroutines of a store take turns, and waiting deliveries are
// stored together.
//
// Errors are of type [*Error] and never quote the data. When printed, the types of this package
// show no health data.
//
// # Several databases
//
// [Slot] gives every user one of 256 slots. A program with several databases has a Store for each,
// and picks that of a user by the slot: docs/scaling.md shows how.
//
// # Schema
//
// [Schema] returns the complete schema. Other programs may read the tables, and join them with
// their own:
//
//	labhealth_samples      series_id, at, version, value, shape_id, seconds, text
//	labhealth_summaries    series_id, id, version, text (JSON)
//	labhealth_series       id, user_id, resource, provider, source_type, shapes
//	labhealth_shapes       id, seconds, has_value, timezone_offset, east, type, unit
//	labhealth_shape_series shape_id, series_id: a shape that no series has is deleted
//	labhealth_users        user_id: a row to lock; with PostgreSQL, a crash empties the table
//	labhealth_inbox        number, delivery_id, received_at, user_id, attempts, due, body
//	labhealth_orders       order_id, user_id, updated, version, created, status, since, results, transaction_id, parent_id,
//	                       changed, missing, check_at, results_at, text (JSON)
//	labhealth_order_events order_id, id, at, status, detail: the timelines
//	labhealth_order_results order_id, user_id, version, revision, status, text (JSON)
//	labhealth_dead_letters number, delivery_id, received_at, user_id, attempts, failed_at, reason, body
//	labhealth_reactions    number, id, kind, user_id, order_id, at, queued, due, attempts, failed_at, reason, body
//	labhealth_deliveries   id (the start of the ID and a digest), at
//	labhealth_reconciled   name, value (JSON): where the passes of a Reconciler go on
//	labhealth_reconciled_users user_id, at, missing, deleted: when a Reconciler compared a user, since when the service has none,
//	                       and when DeleteUser was called
//	labhealth_schema       version
//	labhealth_readings     view of the samples: user_id, resource, provider, source_type, time, value, unit, type,
//	                       seconds (of an interval), timezone_offset, at, document
//	labhealth_reports      view of the summaries: user_id, resource, id, version, document
//	labhealth_order_states view of the orders: order_id, user_id, status, since, results, transaction_id, parent_id, origin,
//	                       sample_id, created, updated, changed, missing, document
//	labhealth_order_timeline view of the timelines: order_id, user_id, at, status, detail
//
// In the views, time, the times of orders and the at of a timeline are a timestamptz, and document
// is the JSON of a summary, of an order, or of a sample that does not fit the columns, as jsonb.
// With SQLite both are text, such as 2025-03-01T12:00:00.000000Z. What jsonb cannot hold does not
// fail a query: \u0000 becomes U+FFFD, and a document with a number beyond numeric is NULL. value
// is rounded to a double, and the interval of a sample with a document is only in the document.
// This query returns the heart rate of a user:
//
//	SELECT time, value, unit FROM labhealth_readings WHERE user_id = '…' AND resource = 'heartrate' ORDER BY time
//
// An order without a readable user has the zero UUID. since is when the order reached its status,
// and NULL or, in the table, 0 if that is unknown; so are created and updated. missing is when the
// service was found not to have the order anymore. This query finds the orders that have waited for
// results in the same status for two weeks:
//
//	SELECT order_id, status, since FROM labhealth_order_states WHERE results IN ('none', 'partial') AND missing IS NULL
//	AND status NOT LIKE 'failed.%' AND status NOT LIKE 'cancelled.%' AND since < now() - interval '14 days' ORDER BY since
//
// In tables, times are nanoseconds since 1970. due is 0 if the delivery has not failed, and at most
// 4503599627370496 if a batch with it exceeded a time limit, in which case it will be tried alone.
// The views of samples have the time as at. Conditions on at use the index and read only the
// partitions of that time, while those on time are compared with every sample of the user. In a
// panel of Grafana, and in psql:
//
//	… AND $__unixEpochNanoFilter(at) ORDER BY time
//	… AND at >= (1e9 * extract(epoch FROM timestamptz '2026-11-01'))::bigint ORDER BY time
//
// A sample that does not fit these columns has its JSON in the column text and shape 0. In text
// columns that do not hold JSON, a backslash is doubled, and a byte that PostgreSQL cannot store is
// escaped, as in \x00.
package sqlstore
