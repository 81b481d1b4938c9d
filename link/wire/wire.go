// Package wire is what crosses a link: the names of subjects and streams, and what of it a
// host may use.
package wire

import "github.com/nats-io/nats.go/jetstream"

// Protocol is the version of what crosses.
const Protocol = 1

// MailSubject is the subject of the mail of one host to another.
func MailSubject(from, to string) string { return "netsky.mail." + from + "." + to }

// MailStream is the stream that keeps the mail of one host to all others until they have it.
func MailStream(from string) string { return "NETSKY-MAIL-" + from }

// Mail returns the configuration of a host's stream, without its limits.
func Mail(from string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: MailStream(from), Subjects: []string{MailSubject(from, "*")},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
	}
}
