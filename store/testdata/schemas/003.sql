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
CREATE TABLE task_dependencies (
	task    TEXT NOT NULL REFERENCES tasks(id),
	needs   TEXT NOT NULL REFERENCES tasks(id),
	created INTEGER NOT NULL,
	PRIMARY KEY (task, needs)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE notes (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	about   TEXT NOT NULL DEFAULT '',
	author  TEXT NOT NULL DEFAULT '',
	text    TEXT NOT NULL,
	created INTEGER NOT NULL
) STRICT;
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
CREATE TABLE schedules (
	id           TEXT PRIMARY KEY,
	spec         TEXT NOT NULL,
	target       TEXT NOT NULL,
	text         TEXT NOT NULL,
	who          TEXT NOT NULL,
	created      INTEGER NOT NULL,
	first        INTEGER NOT NULL, -- the runs are those after this time
	times        INTEGER NOT NULL, -- how many are sent at most; 0: no limit
	until        INTEGER NOT NULL, -- none is due after this time; 0: no limit
	ended        INTEGER NOT NULL DEFAULT 0,
	why          TEXT NOT NULL DEFAULT '',
	last_due     INTEGER NOT NULL DEFAULT 0,
	last_wall    INTEGER NOT NULL DEFAULT 0,
	last_at      INTEGER NOT NULL DEFAULT 0,
	last_result  TEXT NOT NULL DEFAULT '',
	last_note    TEXT NOT NULL DEFAULT '',
	last_message TEXT NOT NULL DEFAULT '',
	sent         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE phone_lines (
	line      TEXT PRIMARY KEY,
	cursor    TEXT NOT NULL DEFAULT '', -- what its transport continues from
	forwarded INTEGER NOT NULL,         -- messages.seq up to which the owner's mail has been looked at
	fence     INTEGER NOT NULL,         -- mail up to this time was forwarded, by records that were lost; 0: none were
	since     INTEGER NOT NULL          -- its first use
) STRICT;
CREATE TABLE phone_heard (
	seq     INTEGER PRIMARY KEY,
	line    TEXT NOT NULL,
	guid    TEXT NOT NULL,              -- the transport's
	chat    TEXT NOT NULL,              -- its key
	room    TEXT NOT NULL DEFAULT '',   -- the transport's name of the chat
	handle  TEXT NOT NULL DEFAULT '',
	from_me INTEGER NOT NULL,
	at      INTEGER NOT NULL,           -- when it was written
	heard   INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	text    TEXT NOT NULL DEFAULT '',
	about   TEXT NOT NULL DEFAULT '',   -- the guid of the message that it belongs to
	files   TEXT NOT NULL DEFAULT '',   -- JSON: what came with it
	verdict TEXT NOT NULL,
	state   TEXT NOT NULL,
	tries   INTEGER NOT NULL DEFAULT 0,
	target  TEXT NOT NULL DEFAULT '',   -- the agent it went to
	message TEXT NOT NULL DEFAULT '',   -- the envelope's id
	note    TEXT NOT NULL DEFAULT '',
	UNIQUE (line, guid)
) STRICT;
CREATE TABLE phone_said (
	seq        INTEGER PRIMARY KEY,
	line       TEXT NOT NULL,
	id         TEXT NOT NULL,
	part       INTEGER NOT NULL,        -- from 1
	parts      INTEGER NOT NULL,
	chat       TEXT NOT NULL,
	room       TEXT NOT NULL DEFAULT '',
	kind       TEXT NOT NULL,           -- mail, need, list, answer, alert, note; past: a need that is over
	rank       INTEGER NOT NULL,        -- the lower are sent first
	about      TEXT NOT NULL DEFAULT '', -- a message's id, a need's code, the guid that is answered
	digest     TEXT NOT NULL DEFAULT '', -- of the need
	text       TEXT NOT NULL DEFAULT '',
	file       TEXT NOT NULL DEFAULT '',
	choices    TEXT NOT NULL DEFAULT '', -- JSON
	state      TEXT NOT NULL,
	mark       TEXT NOT NULL DEFAULT '',
	guid       TEXT NOT NULL DEFAULT '',
	fact       TEXT NOT NULL DEFAULT '',
	tries      INTEGER NOT NULL DEFAULT 0,
	not_before INTEGER NOT NULL DEFAULT 0,
	created    INTEGER NOT NULL,
	began      INTEGER NOT NULL DEFAULT 0,
	ended      INTEGER NOT NULL DEFAULT 0,
	echo_me    INTEGER NOT NULL DEFAULT 0, -- rows from our own account that were this message's echo
	echo_other INTEGER NOT NULL DEFAULT 0, -- and rows from the other side
	UNIQUE (line, id, part)
) STRICT;
INSERT INTO actor_inputs (seq, actor, thread, message, state, reason, created, ended) VALUES (1, 'agent1', 'th-2', 'm-1', 'consumed', '', 1700000000152, 1700000000153);
INSERT INTO actor_inputs (seq, actor, thread, message, state, reason, created, ended) VALUES (2, 'agent0', 'th-1', 'm-3', 'pending', '', 1700000000154, 0);
INSERT INTO actors (id, role, runtime, dir, objective, desired, created, updated) VALUES ('agent0', 'root', 'claude', '/src/it''s', 'ship it', 'up', 1700000000000, 1700000000500);
INSERT INTO actors (id, role, runtime, dir, objective, desired, created, updated) VALUES ('agent1', 'clone', 'codex', '/src', '', 'down', 1700000000001, 1700000000600);
INSERT INTO deliveries (seq, message, sender, target, filed, rank, attempts, reason, answer, answer_kind, queued, claimed, delivered, ended, answered, changed) VALUES (1, 'm-1', 'owner', 'agent1', 'delivered', 3, 1, '', 'm-2', 'reply', 1700000000151, 1700000000152, 1700000000153, 0, 1700000000160, 1700000000160);
INSERT INTO deliveries (seq, message, sender, target, filed, rank, attempts, reason, answer, answer_kind, queued, claimed, delivered, ended, answered, changed) VALUES (2, 'm-2', 'agent1', 'owner', 'queued', 1, 0, '', '', '', 1700000000161, 0, 0, 0, 0, 1700000000161);
INSERT INTO logs (id, key, time, level, part, actor, about, text, fields) VALUES (7, 'k-1', 1700000000190, 'warn', 'watchdog', 'agent1', 'start-of-agent1', 'died: status 3', '{"n":1}');
INSERT INTO messages (seq, id, sender, target, kind, text, time, in_reply_to, thread, hops, via, idempotency_key, requires_ack, expires, start, attachments, metadata) VALUES (1, 'm-1', 'owner', 'agent1', 'message', 'what''s this? 日本', 1700000000150, '', '', 0, 'cli', 'k', 1, 1800000000000, '', '["attach/a.png"]', '{"chat":"c1"}');
INSERT INTO messages (seq, id, sender, target, kind, text, time, in_reply_to, thread, hops, via, idempotency_key, requires_ack, expires, start, attachments, metadata) VALUES (2, 'm-2', 'agent1', 'owner', 'reply', 'that', 1700000000160, 'm-1', 'th-2', 1, 'mcp', '', 0, 0, 'start-of-agent1', '', '');
INSERT INTO notes (seq, id, about, author, text, created) VALUES (1, 'n-1', 't-1', 'agent1', 'was easy', 1700000000180);
INSERT INTO schedules (id, spec, target, text, who, created, first, times, until, ended, why, last_due, last_wall, last_at, last_result, last_note, last_message, sent) VALUES ('cron-1', '0 9 * * 1-5', 'agent1', 'good morning', 'owner', 1700000000200, 1700000000200, 3, 0, 0, '', 1700000000300, 1700003600300, 1700000000301, 'sent', '', 'm-4', 1);
INSERT INTO self_update_runs (seq, id, state, repository, revision, commands, backup, rollback_hint, error, started, updated, ended) VALUES (1, 'u-1.01', 'built', '/src', 'abc', '["go build"]', 'netsky.bak', 'put it back', '', 1700000000192, 1700000000193, 0);
INSERT INTO sessions (seq, start, actor, runtime, tmux, pid, pid_start, thread, state, status, signal, reason, last_lines, started, changed, ended) VALUES (1, 'start-of-agent0', 'agent0', 'claude', 'agent0', 10, 99, 'th-1', 'idle', NULL, '', '', '', 1700000000100, 1700000000200, 0);
INSERT INTO sessions (seq, start, actor, runtime, tmux, pid, pid_start, thread, state, status, signal, reason, last_lines, started, changed, ended) VALUES (2, 'start-of-agent1', 'agent1', 'codex', 'agent1', 11, 100, 'th-2', 'dead', 3, '', 'died', 'panic: ü
bye', 1700000000101, 1700000000201, 1700000000300);
INSERT INTO sessions (seq, start, actor, runtime, tmux, pid, pid_start, thread, state, status, signal, reason, last_lines, started, changed, ended) VALUES (3, 'again-of-agent1', 'agent1', 'codex', 'agent1', 12, 101, 'th-2', 'down', NULL, 'terminated', 'down', '', 1700000000400, 1700000000401, 1700000000402);
INSERT INTO settings (key, value, who, updated) VALUES ('quiet', '1h', 'owner', 1700000000191);
INSERT INTO task_dependencies (task, needs, created) VALUES ('t-2', 't-1', 1700000000174);
INSERT INTO tasks (seq, id, title, body, priority, state, asked_by, assignee, message, estimate_minutes, actual_minutes, proof, created, started, ended, updated) VALUES (1, 't-1', 'find out', 'why it is so', 1, 'done', 'owner', 'agent1', 'm-1', 30, 20, 'abc', 1700000000170, 1700000000171, 1700000000172, 1700000000172);
INSERT INTO tasks (seq, id, title, body, priority, state, asked_by, assignee, message, estimate_minutes, actual_minutes, proof, created, started, ended, updated) VALUES (2, 't-2', 'then', '', 0, 'open', '', '', '', 0, 0, '', 1700000000173, 0, 0, 1700000000173);
INSERT INTO phone_lines (line, cursor, forwarded, fence, since) VALUES ('telegram', '42', 2, 0, 1700000000210);
INSERT INTO phone_heard (seq, line, guid, chat, room, handle, from_me, at, heard, kind, text, about, files, verdict, state, tries, target, message, note) VALUES (1, 'telegram', 'g-1', 'c-1', '7', 'me', 0, 1700000000220, 1700000000221, 'text', 'hello', '', '', 'owner', 'done', 0, 'agent1', 'm-5', '');
INSERT INTO phone_said (seq, line, id, part, parts, chat, room, kind, rank, about, digest, text, file, choices, state, mark, guid, fact, tries, not_before, created, began, ended, echo_me, echo_other) VALUES (1, 'telegram', 's-1', 1, 1, 'c-1', '7', 'mail', 2, 'm-2', '', 'that', '', '', 'sent', 'x', 'g-2', '', 1, 0, 1700000000222, 1700000000223, 1700000000224, 0, 0);
CREATE INDEX sessions_actor ON sessions (actor, started);
CREATE INDEX sessions_started ON sessions (started);
CREATE INDEX sessions_open ON sessions (actor) WHERE ended = 0;
CREATE INDEX sessions_thread ON sessions (thread) WHERE thread <> '';
CREATE INDEX messages_time ON messages (time);
CREATE INDEX messages_sender ON messages (sender, time);
CREATE INDEX messages_target ON messages (target, time);
CREATE INDEX messages_answers ON messages (in_reply_to) WHERE in_reply_to <> '';
CREATE INDEX messages_thread ON messages (thread) WHERE thread <> '';
CREATE INDEX deliveries_state ON deliveries (state, target);
CREATE INDEX deliveries_filed ON deliveries (filed, target);
CREATE INDEX deliveries_target ON deliveries (target, changed);
CREATE INDEX deliveries_changed ON deliveries (changed);
CREATE INDEX tasks_state ON tasks (state, created);
CREATE INDEX tasks_created ON tasks (created);
CREATE INDEX tasks_assignee ON tasks (assignee, created);
CREATE INDEX tasks_message ON tasks (message) WHERE message <> '';
CREATE INDEX task_dependencies_needs ON task_dependencies (needs);
CREATE INDEX actor_inputs_pending ON actor_inputs (actor, seq) WHERE state = 'pending';
CREATE INDEX actor_inputs_message ON actor_inputs (message);
CREATE INDEX notes_about ON notes (about) WHERE about <> '';
CREATE INDEX logs_actor ON logs (actor) WHERE actor <> '';
CREATE INDEX logs_about ON logs (about) WHERE about <> '';
CREATE INDEX schedules_active ON schedules (created) WHERE ended = 0;
CREATE INDEX phone_heard_new ON phone_heard (line, seq) WHERE state = 'new';
CREATE INDEX phone_heard_chat ON phone_heard (line, chat, heard);
CREATE INDEX phone_heard_time ON phone_heard (heard);
CREATE INDEX phone_heard_message ON phone_heard (message) WHERE message <> '';
CREATE INDEX phone_said_open ON phone_said (line, state, rank, seq) WHERE state IN ('pending', 'sending', 'unconfirmed');
CREATE INDEX phone_said_chat ON phone_said (line, chat, began);
CREATE INDEX phone_said_about ON phone_said (about) WHERE about <> '';
CREATE INDEX phone_said_guid ON phone_said (guid) WHERE guid <> '';
CREATE INDEX phone_said_time ON phone_said (created);
PRAGMA user_version = 3;
