-- Times are integer milliseconds UTC; 0 is "not yet", '' is "none".

CREATE TABLE actors (
	id        TEXT PRIMARY KEY,
	role      TEXT NOT NULL,
	runtime   TEXT NOT NULL DEFAULT '',
	dir       TEXT NOT NULL DEFAULT '',
	objective TEXT NOT NULL DEFAULT '',
	desired   TEXT NOT NULL DEFAULT '',
	created   INTEGER NOT NULL,
	updated   INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
	seq        INTEGER PRIMARY KEY,
	start      TEXT NOT NULL UNIQUE,
	actor      TEXT NOT NULL REFERENCES actors(id),
	runtime    TEXT NOT NULL DEFAULT '',
	tmux       TEXT NOT NULL DEFAULT '',
	pid        INTEGER NOT NULL DEFAULT 0,
	pid_start  INTEGER NOT NULL DEFAULT 0,
	thread     TEXT NOT NULL DEFAULT '',
	state      TEXT NOT NULL DEFAULT '',
	status     INTEGER,
	signal     TEXT NOT NULL DEFAULT '',
	reason     TEXT NOT NULL DEFAULT '',
	last_lines TEXT NOT NULL DEFAULT '',
	started    INTEGER NOT NULL,
	changed    INTEGER NOT NULL DEFAULT 0,
	ended      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_actor ON sessions (actor, started);
CREATE INDEX sessions_started ON sessions (started);
CREATE INDEX sessions_open ON sessions (actor) WHERE ended = 0;
CREATE INDEX sessions_thread ON sessions (thread) WHERE thread <> '';

-- An id is its sender's: two that both count from 1 lose nothing.
CREATE TABLE messages (
	seq             INTEGER PRIMARY KEY,
	id              TEXT NOT NULL,
	sender          TEXT NOT NULL DEFAULT '',
	target          TEXT NOT NULL DEFAULT '',
	kind            TEXT NOT NULL DEFAULT '',
	text            TEXT NOT NULL DEFAULT '',
	time            INTEGER NOT NULL,
	in_reply_to     TEXT NOT NULL DEFAULT '',
	thread          TEXT NOT NULL DEFAULT '',
	hops            INTEGER NOT NULL DEFAULT 0,
	via             TEXT NOT NULL DEFAULT '',
	idempotency_key TEXT NOT NULL DEFAULT '',
	requires_ack    INTEGER NOT NULL DEFAULT 0,
	expires         INTEGER NOT NULL DEFAULT 0,
	start           TEXT NOT NULL DEFAULT '',
	attachments     TEXT NOT NULL DEFAULT '',
	metadata        TEXT NOT NULL DEFAULT '',
	UNIQUE (id, sender)
) STRICT;
CREATE INDEX messages_time ON messages (time);
CREATE INDEX messages_sender ON messages (sender, time);
CREATE INDEX messages_target ON messages (target, time);
CREATE INDEX messages_answers ON messages (in_reply_to) WHERE in_reply_to <> '';
CREATE INDEX messages_thread ON messages (thread) WHERE thread <> '';

-- filed is where the mailbox has the message; state adds what answered it.
-- An error may also tell why a message was not delivered; that answers nothing.
CREATE TABLE deliveries (
	seq         INTEGER PRIMARY KEY,
	message     TEXT NOT NULL,
	sender      TEXT NOT NULL,
	target      TEXT NOT NULL,
	filed       TEXT NOT NULL,
	rank        INTEGER NOT NULL,
	attempts    INTEGER NOT NULL DEFAULT 0,
	reason      TEXT NOT NULL DEFAULT '',
	answer      TEXT NOT NULL DEFAULT '',
	answer_kind TEXT NOT NULL DEFAULT '',
	queued      INTEGER NOT NULL DEFAULT 0,
	claimed     INTEGER NOT NULL DEFAULT 0,
	delivered   INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	answered    INTEGER NOT NULL DEFAULT 0,
	changed     INTEGER NOT NULL,
	state       TEXT NOT NULL GENERATED ALWAYS AS (CASE
		WHEN answer = '' THEN filed
		WHEN answer_kind = 'error' AND filed <> 'delivered' THEN filed
		ELSE 'answered' END) STORED,
	UNIQUE (message, sender, target),
	FOREIGN KEY (message, sender) REFERENCES messages(id, sender)
) STRICT;
CREATE INDEX deliveries_state ON deliveries (state, target);
CREATE INDEX deliveries_filed ON deliveries (filed, target);
CREATE INDEX deliveries_target ON deliveries (target, changed);
CREATE INDEX deliveries_changed ON deliveries (changed);

CREATE TABLE tasks (
	seq              INTEGER PRIMARY KEY,
	id               TEXT NOT NULL UNIQUE,
	title            TEXT NOT NULL,
	body             TEXT NOT NULL DEFAULT '',
	priority         INTEGER NOT NULL DEFAULT 0,
	state            TEXT NOT NULL,
	asked_by         TEXT NOT NULL DEFAULT '',
	assignee         TEXT NOT NULL DEFAULT '',
	message          TEXT NOT NULL DEFAULT '',
	estimate_minutes INTEGER NOT NULL DEFAULT 0,
	actual_minutes   INTEGER NOT NULL DEFAULT 0,
	proof            TEXT NOT NULL DEFAULT '',
	created          INTEGER NOT NULL,
	started          INTEGER NOT NULL DEFAULT 0,
	ended            INTEGER NOT NULL DEFAULT 0,
	updated          INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_state ON tasks (state, created);
CREATE INDEX tasks_created ON tasks (created);
CREATE INDEX tasks_assignee ON tasks (assignee, created);
CREATE INDEX tasks_message ON tasks (message) WHERE message <> '';

CREATE TABLE task_dependencies (
	task    TEXT NOT NULL REFERENCES tasks(id),
	needs   TEXT NOT NULL REFERENCES tasks(id),
	created INTEGER NOT NULL,
	PRIMARY KEY (task, needs)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_dependencies_needs ON task_dependencies (needs);

CREATE TABLE actor_inputs (
	seq     INTEGER PRIMARY KEY,
	actor   TEXT NOT NULL,
	thread  TEXT NOT NULL,
	message TEXT NOT NULL,
	state   TEXT NOT NULL,
	reason  TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL,
	ended   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (actor, thread, message)
) STRICT;
CREATE INDEX actor_inputs_pending ON actor_inputs (actor, seq) WHERE state = 'pending';
CREATE INDEX actor_inputs_message ON actor_inputs (message);

CREATE TABLE notes (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	about   TEXT NOT NULL DEFAULT '',
	author  TEXT NOT NULL DEFAULT '',
	text    TEXT NOT NULL,
	created INTEGER NOT NULL
) STRICT;
CREATE INDEX notes_about ON notes (about) WHERE about <> '';

-- id is the event id the dashboard counts by: never given out twice.
CREATE TABLE logs (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	key    TEXT NOT NULL UNIQUE,
	time   INTEGER NOT NULL,
	level  TEXT NOT NULL,
	part   TEXT NOT NULL DEFAULT '',
	actor  TEXT NOT NULL DEFAULT '',
	about  TEXT NOT NULL DEFAULT '',
	text   TEXT NOT NULL,
	fields TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX logs_actor ON logs (actor) WHERE actor <> '';
CREATE INDEX logs_about ON logs (about) WHERE about <> '';

CREATE TABLE settings (
	key     TEXT PRIMARY KEY,
	value   TEXT NOT NULL,
	who     TEXT NOT NULL DEFAULT '',
	updated INTEGER NOT NULL
) STRICT;

CREATE TABLE self_update_runs (
	seq           INTEGER PRIMARY KEY,
	id            TEXT NOT NULL UNIQUE,
	state         TEXT NOT NULL,
	repository    TEXT NOT NULL DEFAULT '',
	revision      TEXT NOT NULL DEFAULT '',
	commands      TEXT NOT NULL DEFAULT '',
	backup        TEXT NOT NULL DEFAULT '',
	rollback_hint TEXT NOT NULL DEFAULT '',
	error         TEXT NOT NULL DEFAULT '',
	started       INTEGER NOT NULL,
	updated       INTEGER NOT NULL,
	ended         INTEGER NOT NULL DEFAULT 0
) STRICT;
