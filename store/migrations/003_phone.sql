-- The phone bridge. A line is one transport, as it is set up: "messages", "telegram".
CREATE TABLE phone_lines (
	line      TEXT PRIMARY KEY,
	cursor    TEXT NOT NULL DEFAULT '', -- what its transport continues from
	forwarded INTEGER NOT NULL,         -- messages.seq up to which the owner's mail has been looked at
	fence     INTEGER NOT NULL,         -- mail up to this time was forwarded, by records that were lost; 0: none were
	since     INTEGER NOT NULL          -- its first use
) STRICT;

-- What arrived in the owner's chats. A row in state 'new' has not taken effect for certain.
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
CREATE INDEX phone_heard_new ON phone_heard (line, seq) WHERE state = 'new';
CREATE INDEX phone_heard_chat ON phone_heard (line, chat, heard);
CREATE INDEX phone_heard_time ON phone_heard (heard);
CREATE INDEX phone_heard_message ON phone_heard (message) WHERE message <> '';

-- What is sent to the owner's chats, in parts. It is also the ledger against echoes: a row
-- is written before the transport is called.
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
CREATE INDEX phone_said_open ON phone_said (line, state, rank, seq) WHERE state IN ('pending', 'sending', 'unconfirmed');
CREATE INDEX phone_said_chat ON phone_said (line, chat, began);
CREATE INDEX phone_said_about ON phone_said (about) WHERE about <> '';
CREATE INDEX phone_said_guid ON phone_said (guid) WHERE guid <> '';
CREATE INDEX phone_said_time ON phone_said (created);
