package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsky/bus"
)

// Limits bound what a server keeps for a team.
type Limits struct {
	Keep      time.Duration // how long mail and files wait
	States    time.Duration // how long a state counts that is not renewed
	MailBytes int64         // of the mail of one host
	FileBytes int64         // of the files of one host
	Message   int32         // bytes of one message with its headers
	Replicas  int           // 1, or 3 on a cluster
}

// DefaultLimits are those of a server that netsky runs.
func DefaultLimits() Limits {
	return Limits{Keep: bus.ServerKeeps, States: 10 * time.Minute, MailBytes: 256 << 20, FileBytes: 1 << 30, Message: MaxMessage, Replicas: 1}
}

// What waits for one host is bounded beside its bytes, so that one that takes nothing does not
// keep back what is for others; and so are files, as a server keeps the subject of each part in memory.
const (
	MaxWaiting = 50_000
	maxParts   = 1 << 16
)

// MaxMessage is the largest message, with its headers: an envelope of 1 MiB.
const MaxMessage = 1<<20 + 64<<10

// maxState is the largest value of a key.
const maxState = 256 << 10

// Provision makes the streams and buckets of a team, and gives those that are there the
// limits. It may be repeated, and is, by whoever runs it first after the hosts have changed.
// A host that is not among them loses its consumers, and its streams once they are empty: what
// it has sent and nobody has taken is dropped after Keep, and so is what waits for it.
func Provision(ctx context.Context, js jetstream.JetStream, hosts []string, l Limits) error {
	for _, c := range []jetstream.StreamConfig{bucket(Team, 0, l), bucket(Hosts, l.States, l)} {
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return fmt.Errorf("stream %s: %w", c.Name, err)
		}
	}
	for _, from := range hosts {
		for _, c := range []jetstream.StreamConfig{mail(from, l), files(from, l)} {
			if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
				return fmt.Errorf("stream %s: %w", c.Name, err)
			}
		}
		if err := receivers(ctx, js, from, hosts); err != nil {
			return fmt.Errorf("stream %s: %w", MailStream(from), err)
		}
	}
	return sweep(ctx, js, hosts)
}

// receivers gives each other host a consumer of a host's mail.
func receivers(ctx context.Context, js jetstream.JetStream, from string, hosts []string) error {
	s, err := js.Stream(ctx, MailStream(from))
	if err != nil {
		return err
	}
	for _, to := range hosts {
		if to != from {
			if _, err := s.CreateOrUpdateConsumer(ctx, receiver(from, to)); err != nil {
				return fmt.Errorf("consumer %s: %w", to, err)
			}
		}
	}
	names := s.ConsumerNames(ctx)
	for name := range names.Name() {
		if !slices.Contains(hosts, name) {
			if err := s.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
	}
	return names.Err()
}

// sweep removes the empty streams of hosts that are no longer in the team.
func sweep(ctx context.Context, js jetstream.JetStream, hosts []string) error {
	list := js.ListStreams(ctx)
	var gone []string
	for info := range list.Info() {
		host, ok := strings.CutPrefix(info.Config.Name, MailStream(""))
		if !ok {
			host, ok = strings.CutPrefix(info.Config.Name, FileStream(""))
		}
		if ok && info.State.Msgs == 0 && !slices.Contains(hosts, host) {
			gone = append(gone, info.Config.Name)
		}
	}
	if err := list.Err(); err != nil {
		return err
	}
	for _, name := range gone {
		if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return nil
}

func mail(from string, l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: MailStream(from), Subjects: []string{MailSubject(from, "*")}, Storage: jetstream.FileStorage,
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
		MaxMsgsPerSubject: MaxWaiting, DiscardNewPerSubject: true,
		MaxAge: l.Keep, MaxBytes: l.MailBytes, MaxMsgSize: l.Message, Replicas: l.Replicas,
	}
}

func files(from string, l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: FileStream(from), Subjects: []string{FileSubject(from, "*", "*", "*")}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, MaxMsgs: maxParts, AllowDirect: true,
		MaxAge: l.Keep, MaxBytes: l.FileBytes, MaxMsgSize: l.Message, Replicas: l.Replicas,
	}
}

// bucket is what nats.go makes for a bucket of keys, but nobody can roll it up, which
// removes the keys of others.
func bucket(name string, age time.Duration, l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{keySubject(name, ">")}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, AllowDirect: true, DenyDelete: true,
		MaxAge: age, MaxMsgSize: maxState, Replicas: l.Replicas,
		RePublish: &jetstream.RePublish{Source: keySubject(name, ">"), Destination: Told(name, ">")},
	}
}

// receiver is one host's consumer of the mail of another.
func receiver(from, to string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: to, FilterSubject: MailSubject(from, to), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 10 * time.Second, MaxAckPending: 1000,
	}
}
