// Package phone is the phone bridge: what the owner writes on a phone becomes a message of
// theirs to an agent, and what agents write to the owner, and whatever needs the owner, arrives
// on the phone. A [Transport] carries the texts: Messages.app on this Mac, a Mac elsewhere, or
// a Telegram bot. The rules are the same for all of them, and are here:
//
//   - Only the owner is heard: in direct chats whose other side is one of the owner's handles,
//     by a service that cannot be forged. All else is counted, and its text is not kept.
//   - Nothing that netsky wrote is an order, by three locks: a ledger of what was sent, written
//     before it is sent; the signature in brackets with which all our texts begin; and a brake.
//   - A message takes effect once. It and the place from which reading continues are recorded in
//     one transaction; what it causes has an id made of its own id, so that doing it again
//     after a crash changes nothing.
//   - A yes is bound to the exact words that were shown in that chat. It counts once, and is
//     acknowledged when it has taken effect.
//   - What was sent is "sent" if the transport's own record shows it, "unconfirmed" if nothing
//     does, and "failed" if it did not go out. What may have gone out is looked for before it is
//     sent again.
//
// The package does not know how a transport works, what runs an agent, or how an answer takes
// effect: it asks a [Desk]. A crash at any point leaves the records of package phone/record, from
// which the next run continues.
package phone
