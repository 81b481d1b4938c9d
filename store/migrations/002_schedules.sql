-- Schedules: messages that the daemon sends at given times. last_* and sent describe the
-- latest run; last_wall is its time on the clock on the wall, in milliseconds as if UTC.
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
CREATE INDEX schedules_active ON schedules (created) WHERE ended = 0;
