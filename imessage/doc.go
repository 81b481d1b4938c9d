// Package imessage is the transport of this Mac: it reads the database of Messages.app and sends
// with osascript.
//
// # Sending
//
// The script is fixed and reaches osascript on its standard input; what differs from call to call
// (how to address, whom, what) are arguments, so that no text is ever a part of a script. The
// targets are tried in this order: the chat by its guid, the same guid with the other of the
// prefixes "iMessage" and "any", which macOS 26 writes, and, for a direct chat alone, the handle as
// a participant. The next one is tried only after an error by which Messages says that it knows no
// such target, and after a look that shows no message. A group is never sent to as a handle.
//
// That osascript ends well proves nothing. After each try the database is looked at, for five
// seconds at most:
//   - sent: our account's message with the same text is in that chat, without an error;
//   - failed: it has an error, or Messages left an empty row without a chat, or an error by which
//     nothing was sent;
//   - unconfirmed: anything else, a time-out included. Then Find tells later.
//
// Errors are recognised by the number at the end of what osascript prints, since the words are in
// the system's language. A send that has begun is not broken off: after 30 s osascript and what it
// started are ended. One osascript runs at a time.
//
// A file is copied below Messages' own directory of attachments, as Messages reads few others, and
// the copy is removed a day later; at once if nothing was sent and the same is tried again.
//
// # Crashes
//
// An osascript survives the process that started it. So Find believes that a message is not there
// only when such a one would have ended, 35 s after this process began; it waits for that. The
// same goes for a send of this process that timed out. What else is left is a copied file, which
// the next process removes.
//
// # What is not known
//
// The package has not run against Messages.app: its tests use a stand-in. Check says what was
// tried on the machine at hand.
package imessage
