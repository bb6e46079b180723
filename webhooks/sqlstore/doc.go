// Package sqlstore keeps the newest version of every summary and every sample in a database, SQLite or PostgreSQL, by database/sql and
// the program's own driver: what [webhooks.Latest] does in memory, for programs that must lose nothing when a process dies and that
// have more than one. It also stores deliveries before they are acknowledged, and applies them afterwards.
//
// # Quick start
//
//	db, err := sql.Open("pgx", "postgres://…") // any driver
//	…
//	store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
//	…
//	err = store.Migrate(ctx) // makes the tables, or brings them up to date
//	…
//	handler, err := webhooks.NewRawHandler(verifier, store.Receive) // acknowledges what is in the inbox
//	…
//	worker := &sqlstore.Worker{Store: store}
//	go worker.Run(ctx) // takes it out and applies it
//	…
//	samples, err := store.Range(ctx, series, from, to)
//
// A program that has a broker in front applies by itself, many deliveries at a time: see [Store.ApplyAll].
//
// # What is guaranteed
//
//   - Whoever applies the same deliveries, in any order, with repetitions, by any number of processes and on either database, ends with
//     the content that [webhooks.Latest] would have: the newest receipt wins, the later element within a batch, the greater content
//     of equal versions. The hazards of that rule are described there. [webhooks.Changes] are exact.
//   - A delivery that [Store.Receive] took is applied once: it survives the process, and the database if that keeps what it commits.
//     What the [Worker]'s function writes in its transaction is written once too. To do something else there, such as sending a
//     message, can happen again after a crash.
//   - Deliveries of one user are applied one at a time, by whatever process; those of different users at the same time. No order of
//     locks lets the package's own transactions wait for each other in a circle.
//   - A delivery that cannot be applied, or not read whole, ends in labhealth_dead_letters with a reason, and holds up no other; what can
//     be read of it is applied. Watch that table: a change of what the service sends shows there. After an update of the program,
//     [Store.Requeue] puts such deliveries back.
//   - Nothing is lost: a sample that is more than numbers is kept as its JSON, and so is every summary.
//
// What is not:
//
//   - The order of deliveries. A function that must see the versions of a summary in order compares its updated_at.
//   - Agreement of clocks. Versions are ordered by the clocks of the machines that received them. One whose clock is an hour behind
//     loses against what others received within that hour, and what it receives is kept from then on only as its clock passes theirs.
//     Keep clocks in step, and set [Store.Version] where a version says itself which one it is.
//   - Erasure for good: see [Store.DeleteUser].
//   - A database that loses what it has committed, by a standby that was behind when it took over, or by an older backup: what it
//     lost is not delivered again. Programs that only read are to be started anew, as they remember the numbers of rows of
//     labhealth_shapes, which may be others' then; those that write notice it.
//   - Infinities and values that are no numbers, which JSON has not: a sample that a program made with one is refused with its
//     delivery.
//
// # Databases
//
// PostgreSQL 12 or newer. Tested: PostgreSQL 15 with github.com/jackc/pgx/v5/stdlib and github.com/lib/pq. Nothing is needed but
// tables, so a pool that hands out a connection for each transaction may be between, if it knows prepared statements or the
// driver does without (with pgx, default_query_exec_mode=exec in the address). Transactions are READ COMMITTED whatever the
// default. A transaction takes 4 to 8 statements, however many samples it has, and their plans use the indexes whether or not the
// tables were analyzed. A sample takes 90 to 105 bytes of table and index, by the order in which samples come, and 8 more if it
// is an interval of a length that is not common. The space of versions that were replaced is used again after a VACUUM.
//
// SQLite 3.35 or newer, a file. Tested: modernc.org/sqlite. Its connections should have
//
//	PRAGMA journal_mode = WAL     -- readers and the writer do not wait for each other
//	PRAGMA busy_timeout = 10000   -- other processes are waited for
//	PRAGMA synchronous = FULL     -- what is committed was synced to the disk
//
// With modernc.org/sqlite these are parameters of the address:
//
//	file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)
//
// With these two, nothing is acknowledged before it was synced, not even what the store finds because a process that was killed had
// written it. Whether that outlasts a loss of power is up to the disk, which must do what it is told. Other settings promise less:
// with synchronous = NORMAL, or another journal mode, the last commits may be gone after a loss of power.
//
// SQLite has one writer at a time; the goroutines of a store take turns, and deliveries that wait are stored together.
//
// Errors are of type [*Error] and quote nothing of what was to be written. Printed, the types of this package show no health data.
//
// # Schema
//
// [Schema] prints it all. The tables may be read by other programs, and joined with their own:
//
//	labhealth_samples      series_id, at, version, value, shape_id, seconds, text
//	labhealth_summaries    series_id, id, version, text (JSON)
//	labhealth_series       id, user_id, resource, provider, source_type
//	labhealth_shapes       id, seconds, has_value, timezone_offset, east, type, unit
//	labhealth_users        user_id: a row to lock
//	labhealth_inbox        number, delivery_id, received_at, user_id, attempts, due, body
//	labhealth_dead_letters number, delivery_id, received_at, user_id, attempts, failed_at, reason, body
//	labhealth_deliveries   id (a digest), at
//	labhealth_schema       version
//
// Instants are nanoseconds since 1970. The numbers of a user's heart rate:
//
//	SELECT s.at, s.value, f.unit
//	FROM labhealth_series r JOIN labhealth_samples s ON s.series_id = r.id JOIN labhealth_shapes f ON f.id = s.shape_id
//	WHERE r.user_id = '…' AND r.resource = 'heartrate' ORDER BY s.at
//
// Samples that are no mere numbers have their JSON in text, and shape 0. A backslash in a text column other than those of JSON is
// written twice, and a byte that is no text in PostgreSQL as \x00.
package sqlstore
