// Package sqlstore stores lab orders and wearable data (summaries and samples), the latest version
// of each, in SQLite or PostgreSQL, using database/sql and a driver of your choice. It is the
// persistent counterpart of [webhooks.Latest], for programs that must not lose data in a crash or
// that run several processes. It stores deliveries before they are acknowledged, and applies them
// later: it writes their data to the tables. Events without such data, such as those of
// appointments and critical results, are only acknowledged: handle them in OnEvent of
// [ReceiverOptions] or Apply of [Worker].
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
// A [Receiver] creates the tables, stores deliveries, applies them, calls your functions and reads
// what was never delivered. Its parts can also be used on their own: [Store.Receive] stores
// deliveries, a [Worker] applies them, a [Reactor] calls a function, and a [Reconciler] reads from
// the service.
//
// A program that receives deliveries from a broker applies them itself, many at a time: see
// [Store.ApplyAll].
//
// # Guarantees
//
//   - Summaries and samples follow the rule of [webhooks.Latest], with its hazard: the same
//     deliveries give the same content, in any sequence, with repetitions, from any number of
//     processes and in either database. The counts of [webhooks.Changes] are exact.
//   - The latest version of an order by the service's clock wins: its time is the latest of
//     updated_at and the times in its history. So an old event that is delivered again does not
//     replace a newer read. Of versions with the same time, the one received last wins; of those
//     received at the same time, the greater JSON. A version without any time, such as the response
//     of an update, loses to every other. An order whose versions name two users belongs to both;
//     if a version names none, also to the zero user ID.
//   - [Store.Timeline] has each status of any applied version of an order, with its time, once,
//     even if the event was duplicated, late or never delivered. [Applied] counts new ones.
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
//   - Failed deliveries that wait for another attempt do not slow down the others, and applied ones
//     that PostgreSQL cannot remove yet hardly do. [Store.Backlog] counts what waits, at a bounded
//     cost.
//   - If a batch takes too long, its deliveries are tried again singly. Any that still takes too
//     long becomes a dead letter after [Worker].Attempts. Meanwhile other workers go on.
//   - Nothing is lost: summaries are stored as JSON, and so are samples that do not fit the numeric
//     columns, such as numbers with too many digits for a double.
//
// Not guaranteed:
//
//   - The sequence of deliveries. A function that needs the versions of a summary in sequence must
//     compare updated_at.
//   - The sequence of versions if clocks differ: versions of summaries and samples are ordered by
//     the clocks of the machines that received them. Data received by a machine whose clock is an
//     hour behind loses against what others received within that hour. Keep clocks synchronized,
//     and set [Store.Version] if the data contains a version.
//   - Permanent deletion: data that arrives later is stored. See [Store.DeleteUser].
//   - Recovery from the loss of committed data, in a failover to a standby that was behind or a
//     restore of an older backup: lost deliveries are not sent again.
//   - Infinities and NaN, which JSON does not have: a sample that you create with such a value is
//     invalid, and its delivery is not applied.
//
// # Reactions
//
// A reaction is a queued change, for which your function is called after the commit, at least once,
// with the same ID in each call. Each committed change queues exactly one, in its transaction.
//
// A [Receiver] calls the functions of its options. Without a Receiver, select the kinds of changes
// and run a [Reactor]:
//
//	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults}
//	reactor := &sqlstore.Reactor{Store: store, React: notify}
//	go reactor.Run(ctx)
//
// By default nothing is queued; what is queued waits for a Reactor. Deleting a user deletes the
// user's reactions. docs/store.md states what counts as a change, and what happens if a function
// kills its process.
//
// # Databases
//
// PostgreSQL 12 or newer, with the encoding UTF8. Tested: PostgreSQL 15 with
// github.com/jackc/pgx/v5/stdlib and github.com/lib/pq. No extensions are needed.
//
// SQLite 3.35 or newer, in a file. Tested: modernc.org/sqlite, with the file name
//
//	file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)
//
// With WAL and FULL, a delivery is acknowledged only after it was synced. With another journal
// mode, or synchronous = NORMAL or OFF, a power failure can lose the last acknowledged deliveries.
// With PostgreSQL, it can if fsync, full_page_writes or synchronous_commit is off. [Store.Migrate]
// warns of both.
//
// Every primary key starts with the user's slot, a number below 256: see [Slot]. A program with
// several databases has a Store for each, and uses the slot to pick the one of a user. A database
// that distributes tables by a column can use their column slot: see [Store].OneSlot.
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
