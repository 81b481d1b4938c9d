// Package bluebubbles is a transport to a Mac elsewhere that runs BlueBubbles' server: it reads
// and sends through the server's REST API, version 1.
//
// Reading follows the rows of the Mac's message table by their numbers, which grow by one in the
// order of insertion. A date is no cursor: a message may arrive with a date of hours ago, and many
// have the same one. The server leaves out a row that has no chat yet, so rows are looked at again
// for five minutes, as far as they are among the last 150 and their texts have less than 8 MiB;
// those already returned are in the cursor. A message without a text or an attachment is held back
// for ten seconds, as its body may follow. One that is larger than 8 MiB is left out. The cursor
// has the guid of a message: if another one has its number, or the table has become shorter, it is
// another table, and reading begins anew at its end.
//
// The server's socket only says that something happened; every message comes from a query. With
// the socket, queries are made every fifteen seconds all the same, because the server's own
// watching can fail; without, every five; and however much the socket says, four a second at most.
//
// Sending hands the text to the server, which hands it to Messages by AppleScript; since macOS 26 by
// the server's private API, where that is on. Only a row
// without an error counts as sent. Where the server does not tell, the row is looked for; and if
// there is none, the message is unconfirmed, not failed, until it is ten minutes old.
//
// The password is in the query of every request: the server knows no other place for it. So it is
// read from a file that nobody else can read, a server is spoken to by plain http within a
// private network only, redirects are not followed, and no error or log line has an address with
// it. A refused password is not sent again for five minutes, as the server bans who tries often.
//
// The package does not know a message's service, which the server does not pass on: it is that of
// the sender's handle and of the chat, and where one of them is SMS or RCS, it is that. The text of
// newer messages is decoded from their archive by the server, so what that loses is lost here. It
// stores nothing; a crash loses nothing but what the cursor has not recorded.
package bluebubbles
