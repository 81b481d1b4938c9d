package phone

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// Speakers are the people who may speak, as of one moment.
type Speakers interface {
	// OwnerChat reports whether the chat is a direct one with the owner.
	OwnerChat(c chat.Chat) bool
	// May reports whether the handle is the owner's.
	May(handle string) bool
}

// A Gate knows who may speak.
type Gate interface {
	// Speakers reads the list. With an error nobody may speak, and what arrives waits.
	Speakers() (Speakers, error)
	// Offer shows it a text of somebody who may not speak, which may be a pairing code.
	Offer(ctx context.Context, m chat.Message) error
}

// A Desk does what the owner asks for by text, as the verbs of the same names do it.
type Desk interface {
	// Needs lists everything that needs the owner. What can't be read is in the error; the
	// rest is listed.
	Needs(ctx context.Context) ([]attention.Need, error)
	// Answer gives the owner's answer to an item, and returns when it has taken effect, with
	// a sentence about what happened; or with an error, which names the item. An item
	// that is settled already is an error that says how.
	Answer(ctx context.Context, n attention.Need, allow bool) (string, error)
	// How returns how the item with the code was settled, "" if that is not known.
	How(ctx context.Context, code string) string
	// Status returns the state of everything in some lines.
	Status(ctx context.Context) (string, error)
	// Peek returns the last lines of an agent's screen.
	Peek(ctx context.Context, id agent.ID, lines int) (string, error)
	// Stop ends the running turn of an agent, and returns what happened.
	Stop(ctx context.Context, id agent.ID) (string, error)
	// Waits returns why a message to the agent waits for now, "" if it does not.
	Waits(ctx context.Context, id agent.ID) string
}

// Options configure a bridge. All fields are needed, except where a comment says otherwise.
type Options struct {
	Home      home.Dir
	Bus       *bus.Bus
	Records   func() *store.DB // nil while the database is not available
	Transport Transport
	Gate      Gate
	Desk      Desk
	// SelfChat says that the transport's account is the owner's own: what that account writes
	// in the owner's chats counts as theirs.
	SelfChat bool
	// To is the chat to write to until the owner has written in one.
	To func() (chat.Chat, error)
	// Via is what envelopes from the phone say about how they were sent.
	Via string
	// Convert makes a picture that few programs can read into a JPEG. It may be nil.
	Convert func(ctx context.Context, picture []byte) (jpeg []byte, err error)
	// Pace is how much is sent to one chat; the zero Pace is what transports are known to bear.
	Pace Pace
	// Shown reports whether the owner has seen a message elsewhere.
	Shown func(ctx context.Context, message string) (bool, error)
	// Alert reaches the owner in another way, if the phone can't be. It may be nil.
	Alert func(ctx context.Context, subject, body string)
	// Reached is told of an alert that had to wait and was sent. It may be nil.
	Reached func()
	Log     *slog.Logger
	Now     func() time.Time  // nil is time.Now
	Look    time.Duration     // between two looks at whether an approval is asked for; 0 is a second
	Step    func(name string) // called between the steps of what must survive a crash; may be nil
}

// A Pace limits what is sent to one chat. More looks like spam to a transport, and was blocked
// for a day where others did it.
type Pace struct {
	Gap          time.Duration // between two texts
	Minute, Hour int           // how many within that time; of an hour's, a fifth is for what needs the owner
}

var usualPace = Pace{Gap: time.Second, Minute: 20, Hour: 100}

// A Bridge carries messages between the phone and the bus.
type Bridge struct {
	o Options

	unacted chan struct{} // wakes act
	unsent  chan struct{} // wakes send
	unseen  chan struct{} // wakes watch

	status status
}

// errNoRecords is returned while the records can't be used: nothing is read then, so nothing
// is lost.
var errNoRecords = errors.New("the records are not available, and without them the phone bridge takes and sends nothing")

// New returns a bridge.
func New(o Options) *Bridge {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Look == 0 {
		o.Look = remindEvery
	}
	if o.Pace == (Pace{}) {
		o.Pace = usualPace
	}
	b := &Bridge{o: o, unacted: make(chan struct{}, 1), unsent: make(chan struct{}, 1), unseen: make(chan struct{}, 1)}
	b.status.init(o)
	return b
}

// Run carries messages until ctx ends or something fails that only a new start can mend. A
// second bridge of the same home fails with an error that matches home.ErrLocked.
func (b *Bridge) Run(ctx context.Context) error {
	lock, err := b.o.Home.Lock(home.PhoneLock)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	defer b.status.save()
	l, err := b.open(ctx)
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		(&reader{loop: l}).read,
		(&orders{loop: l, acting: make(map[int64]bool)}).act,
		(&sender{loop: l, recheck: make(map[int64]time.Time)}).send,
		(&forwarder{l}).forward,
		(&reminder{loop: l, since: make(map[string]time.Time), gone: make(map[string]time.Time)}).remind,
		l.watch,
	} {
		all.Go(func() error { return run(ctx) })
	}
	return all.Wait()
}

// A loop is one of those that the bridge consists of, with the records and the transport's line in them.
type loop struct {
	*Bridge
	rec  record.Records
	line record.Line
}

// open returns a loop; with an error, one without records.
func (b *Bridge) open(ctx context.Context) (loop, error) {
	db := b.o.Records()
	if db == nil {
		return loop{Bridge: b}, errNoRecords
	}
	r := record.Records{DB: db}
	cursor, forwarded := b.status.kept()
	l, err := r.Open(ctx, b.o.Transport.Name(), cursor, forwarded, b.o.Now())
	if err != nil {
		return loop{Bridge: b}, err
	}
	return loop{b, r, l}, nil
}

// room returns the chat to write to: where the owner wrote last, else the first one that is
// configured.
func (b *loop) room(ctx context.Context) (chat.Chat, bool, error) {
	who, err := b.o.Gate.Speakers()
	if err != nil {
		return chat.Chat{}, false, err
	}
	h, ok, err := b.rec.LastHeard(ctx, b.line.Name, VerdictOrder)
	if err != nil {
		return chat.Chat{}, false, err
	}
	if ok && who.OwnerChat(chatOf(h.Chat)) {
		return chatOf(h.Chat), true, nil
	}
	c, err := b.o.To()
	return c, err == nil && who.OwnerChat(c), err
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mail sends mail to the owner, once.
func (b *Bridge) mail(ctx context.Context, id, text string) {
	_, _, err := b.o.Bus.SendOnce(context.WithoutCancel(ctx), envelope.Envelope{
		ID: id, From: agent.Infinity, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: text, Time: b.o.Now(),
	})
	if err != nil && !errors.Is(err, bus.ErrUsed) {
		b.o.Log.Warn("mail to the owner", "error", err)
	}
}
