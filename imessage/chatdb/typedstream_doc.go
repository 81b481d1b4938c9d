// This file reads the archives that Messages.app stores in the column attributedBody
// of chat.db: an attributed string, written by NSArchiver.
//
// It promises the whole text, exactly as it was written, or an error. It never returns a
// shortened, repaired or guessed text: an instruction that lost its second half is worse than one
// that could not be read. Three facts have to agree before a text is returned: the length in front
// of it, the end of its object behind it, and the attribute runs after that, which count the same
// text once more, in UTF-16 units. So the archive is read to its last byte, and a blob that is
// damaged only after its text is an error too: whatever damaged it may have been at the text as
// well, and nothing tells.
//
// Integers follow the format wherever it is clear. A length in one byte from 0x92 to 0xff is
// read as 146 to 255: no writer was seen to do so, but the format has no other reading for it.
// Two bytes after 0x81 are a signed number in a signed position, and up to 65,535 in a length.
// The eight bytes after 0x87, a later addition, are taken for numbers only.
//
// A blob that begins with a byte-order mark (ff fe) is no archive but UTF-16LE text, which some
// releases are said to have stored. It is read as such, with the same strictness.
//
// It does not know what attributes mean, and it reads no archive of another kind: a
// root that is no string is an error, as are the big-endian archives of PowerPC Macs.
//
// A blob may be written by anyone who can send a message. Time is linear in its length, memory
// is what its own bytes account for, and both have fixed limits, which are constants here.

package chatdb
