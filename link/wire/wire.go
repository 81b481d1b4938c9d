// Package wire is what crosses a link between the hosts of a team: the names of subjects,
// streams and keys, what of them a host may use, and the signature that every message bears.
//
// Each host has a stream of mail and one of files, in which only it writes. So a host that
// floods fills only what is its own.
package wire

import "netsky/link/team"

// Protocol is the version of what crosses.
const Protocol = 1

// Headers of a message, beside [nats.MsgIdHdr].
const (
	ProtocolHeader  = "Netsky-Protocol"
	SignatureHeader = "Netsky-Sig"
)

// The buckets of keys and values. What is written to one is also published, below Told.
const (
	// Hosts holds what each host says of itself, under StateKey; a key that is not renewed goes away.
	Hosts = "netsky-hosts"
	// Team holds the signed team document, under TeamKey.
	Team    = "netsky-team"
	TeamKey = "doc"
)

// Keys of a host in the bucket Hosts are its name, a dot and one of these.
var hostKeys = []string{"state", "needs", "log"}

// StateKey is the key of a host's presence and of the states of its agents.
func StateKey(host string) string { return host + "." + hostKeys[0] }

// NeedsKey is the key of what on a host needs the owner.
func NeedsKey(host string) string { return host + "." + hostKeys[1] }

// LogKey is the key of the newest entries of a host's log.
func LogKey(host string) string { return host + "." + hostKeys[2] }

// Told is the subject on which a change of a key is published; the key may end in a wildcard.
func Told(bucket, key string) string { return "netsky.told." + bucket + "." + key }

// MailSubject is the subject of the mail of one host to another.
func MailSubject(from, to string) string { return "netsky.mail." + from + "." + to }

// MailStream is the stream that keeps the mail of one host to all others until they have it.
func MailStream(from string) string { return "NETSKY-MAIL-" + from }

// FileSubject is the subject of a part of a file from one host to another.
func FileSubject(from, to, id, part string) string {
	return "netsky.file." + from + "." + to + "." + id + "." + part
}

// FileStream is the stream that keeps the files of one host for all others.
func FileStream(from string) string { return "NETSKY-FILES-" + from }

// DeedSubject is the subject of what one host asks another to do, as request and reply.
func DeedSubject(to, from string) string { return "netsky.deed." + to + "." + from }

// A host that wants to join signs in as JoinUser with JoinPassword, which are no secret,
// and speaks to the owner's host on subjects below JoinSubject.
const (
	JoinUser     = team.JoinUser
	JoinPassword = team.JoinPassword
	JoinSubject  = team.JoinSubject
	JoinInbox    = team.JoinInbox
)

// Inbox is the prefix of the subjects on which a host takes replies.
func Inbox(host string) string { return "_INBOX_" + host }
