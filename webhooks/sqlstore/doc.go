// Package sqlstore stores the latest version of every summary, every sample and every order in
// SQLite or PostgreSQL, using database/sql and a driver of the program's choice. It is the
// persistent counterpart of [webhooks.Latest], for programs that must not lose data in a crash or
// that run several processes. It also stores deliveries before they are acknowledged, and applies
// them afterwards. All other events, such as appointments and critical results, are acknowledged
// and not stored: use OnEvent of [ReceiverOptions] or Apply of [Worker].
//
// # Quick start
//
//	db, err := sql.Open("pgx", "postgres://…") // any driver
//	…
//	receiver, err := sqlstore.NewReceiver(db, sqlstore.PostgreSQL, sqlstore.ReceiverOptions{
//		Secrets:   []string{webhookSecret},
//		Client:    client,
//		OnResults: func(ctx context.Context, r sqlstore.StoredResults) error { … },
//	})
//	…
//	http.Handle("/webhooks", receiver)
//	…
//	log.Fatal(receiver.Run(ctx))
//
// A [Receiver] creates the tables, stores deliveries, applies them, calls the functions of the
// program and reads what was never delivered. Its parts can also be used on their own:
// [Store.Receive] stores deliveries, a [Worker] applies them, a [Reactor] calls a function, and a
// [Reconciler] reads from the service.
//
// A program that receives deliveries from a broker applies them itself, many at a time: see
// [Store.ApplyAll].
//
// # Guarantees
//
//   - The same deliveries give the content that [webhooks.Latest] would have, in any order, with
//     repetitions, from any number of processes and in either database: the latest receipt wins,
//     within a batch the later element, among equal versions the greater JSON. See there for the
//     hazard of that rule. The counts of [webhooks.Changes] are exact.
//   - The version of an order that is the latest by the service's clock wins: its time is the
//     greatest of updated_at and the times of its events. So an old event that is delivered again
//     does not replace a newer read. Of versions with the same time, the one received last wins; of
//     those received at the same time, the greater JSON. A version without any time, such as the
//     response of an update, loses to every other. If versions of an order name two users, it is an
//     order of each of them; if one names no user, it is also an order of the zero user.
//   - [Store.Timeline] has every entry, a status and its time, of any applied version of an order,
//     each once, even if its event was duplicated, late or never delivered. [Applied] counts new
//     ones.
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
//   - The order of versions if clocks differ: versions of summaries and samples are ordered by the
//     clocks of the machines that received them. Data received by a machine whose clock is an hour
//     behind loses against what others received within that hour. Keep clocks synchronized, and set
//     [Store.Version] if the data contains a version.
//   - Permanent deletion: see [Store.DeleteUser].
//   - Recovery from the loss of committed data, in a failover to a standby that was behind or a
//     restore of an older backup: lost deliveries are not sent again.
//   - Infinities and NaN, which JSON does not have: a sample that a program creates with such a
//     value is invalid, and its delivery is not applied.
//
// # Reactions
//
// A [Receiver] calls the functions of its options when something changes. Without a Receiver,
// select the kinds of changes and run a [Reactor]:
//
//	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults}
//	reactor := &sqlstore.Reactor{Store: store, React: notify}
//	go reactor.Run(ctx)
//
// A reaction is a call of your function for a change. It is queued in the transaction of the
// change: one for each committed change, none for others. It is called after the commit, at least
// once, with the same ID in each call. By default nothing is queued; what is queued waits for a
// Reactor. Deleting a user deletes the user's reactions. docs/store.md states what is a change, and
// what happens if a function kills its process.
//
// # Databases
//
// PostgreSQL 12 or newer, with the encoding UTF8. Tested: PostgreSQL 15 with
// github.com/jackc/pgx/v5/stdlib and github.com/lib/pq. No extensions are needed.
//
// SQLite 3.35 or newer, in a file. Tested: modernc.org/sqlite, with the file name
//
//	file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)
//
// With WAL and FULL, a delivery is acknowledged only after it was synced, also one that a killed
// process wrote but did not sync. With another journal mode, or synchronous = NORMAL or OFF, a
// power failure can lose the last acknowledged deliveries. With PostgreSQL, it can if fsync,
// full_page_writes or synchronous_commit is off: [Store.Migrate] warns of that.
//
// Every key starts with the slot of the user, from 0 to 255: see [Slot]. A program with several
// databases has a Store for each, and uses the slot to pick the one of a user. A database that
// distributes tables by a column can use their column slot: see [Store].OneSlot.
//
// Errors are of type [*Error] and never quote the data. When printed, the types of this package
// show no health data.
//
// # Tables
//
// Other programs may read the tables, and join these views with their own:
//
//	labhealth_readings       a row for each sample
//	labhealth_reports        a row for each summary
//	labhealth_order_states   a row for each order
//	labhealth_order_timeline a row for each status that an order reached
//
//	SELECT time, value, unit FROM labhealth_readings WHERE user_id = '…' AND resource = 'heartrate' ORDER BY time
//
// [Schema] returns the complete schema with comments. docs/store.md has the columns, more queries,
// settings, and what an administrator can change.
package sqlstore
