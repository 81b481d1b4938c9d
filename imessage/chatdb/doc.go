// Package chatdb reads the database of Messages.app, chat.db. It never writes it.
//
// [DB.Next] returns the messages that were added after a cursor, oldest first, in the order of
// their ROWID, which is the order in which this Mac stored them. Each is returned once, as long
// as the caller records its cursor together with it:
//   - A row may still change when it is first seen: its text, its attachments and its chat are
//     stored after it. It is read half a second later at the earliest.
//   - A row without a chat holds those behind it for a grace of 2.5 s, so that the order stays.
//     Then it is set aside in the cursor (at most 100 rows, for 10 min), and returned once it has
//     a chat. A note says when it is set aside, and when it is given up.
//   - A row without any content is treated in the same way, for 10 s; it is then returned as
//     unreadable. One from our own account is set aside at once: in a chat with oneself such rows
//     stay empty.
//   - A message that its writer has planned with Send Later is set aside in the same way, and returned
//     when it is sent; not if it is deleted before.
//   - A row in several chats is returned once, with a group if there is one, as less is allowed
//     there; among equals with the chat that was made first.
//   - A link that Messages stores a second time, as a preview of the same text by the same
//     sender within 90 s, is left out.
//   - A link that was sent together with words is a row of its own: each message says so.
//   - An edit makes no new row, so it is not returned; what was delivered is what counts.
//     [DB.History] returns messages as they are now.
//
// The package does not know who the owner is. The names of accounts in the database are no proof
// of it, and nothing here is derived from them. What is old, what is an echo and who may speak is
// the caller's to decide; an SMS is returned as an SMS.
//
// # Cursors
//
// A cursor names the database: its path, the identifier in _SqliteDatabaseProperties where
// Messages stored one, and the guid and the date of the row that was last passed. Without the
// identifier those decide: a row of that number with another guid and another date belongs to
// another database. A missing row proves nothing, since people delete messages; then the highest
// number that was ever given (sqlite_sequence) has to reach the cursor. If the cursor does not
// belong to the database, Next begins at its end, with a note.
//
// # The connection
//
// The database is opened read-only, and never as immutable while it has a write-ahead log: such
// a reader would not see new messages. Only where there is no log, and SQLite cannot open the
// file otherwise, is it opened as immutable; Facts reports that, and it ends when a log appears.
// Read transactions last as long as one look. Before each, the numbers of chat.db, its log and
// its index file are compared with those that were opened, as a replaced log makes a reader deaf
// for good; every two minutes it is opened anew anyway.
//
// There is no file-system watch: PRAGMA data_version is asked every 750 ms, every 200 ms for a
// minute after something came. On macOS a watched directory means that all files in it are
// opened, and closing one of them would release the locks that SQLite holds in this process.
// For the same reason nothing here opens chat.db but SQLite.
//
// A crash leaves nothing. Memory is bounded: a body over 4 MiB is not read but reported as
// unreadable, and a batch ends at 8 MiB of bodies.
package chatdb
