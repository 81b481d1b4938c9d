-- What a task came to: who wants it started or has started it, the brief that its worker was
-- given and has not answered, and when; who closed it, and the commits that the worker was at when it
-- began, and then. starts counts the briefs.
ALTER TABLE tasks ADD COLUMN starter TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN brief TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN briefed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN closed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN begun TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_brief ON tasks (brief) WHERE brief <> '';
CREATE INDEX tasks_wanted ON tasks (seq) WHERE state = 'open' AND starter <> '';

-- The worktrees of agents. What is true of a branch is read from git, each time.
CREATE TABLE worktrees (
	agent   TEXT PRIMARY KEY,
	repo    TEXT NOT NULL,             -- the git directory that its worktrees share
	dir     TEXT NOT NULL,             -- the root of the worktree
	branch  TEXT NOT NULL,             -- a full ref name, as base is
	base    TEXT NOT NULL,             -- the branch it was made from, and lands on
	state   TEXT NOT NULL,             -- live, retired
	made    INTEGER NOT NULL,
	changed INTEGER NOT NULL
) STRICT;

-- Runs of [work] check on a merged tree.
CREATE TABLE checks (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	agent   TEXT NOT NULL,
	task    TEXT NOT NULL DEFAULT '',
	repo    TEXT NOT NULL,
	target  TEXT NOT NULL,             -- the ref that it would land on
	base    TEXT NOT NULL,             -- the commit of target
	head    TEXT NOT NULL,             -- the commit of the branch
	tree    TEXT NOT NULL,             -- of both merged
	command TEXT NOT NULL,
	digest  TEXT NOT NULL,             -- of the command
	state   TEXT NOT NULL,             -- running, passed, failed, broken
	status  INTEGER NOT NULL DEFAULT 0,
	reason  TEXT NOT NULL DEFAULT '',  -- how it ended, if not by an exit status
	log     TEXT NOT NULL DEFAULT '',  -- a file below the home
	asker   TEXT NOT NULL DEFAULT '',
	started INTEGER NOT NULL,
	ended   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX checks_tree ON checks (tree, digest);
CREATE INDEX checks_agent ON checks (agent, started);
CREATE INDEX checks_task ON checks (task) WHERE task <> '';
CREATE INDEX checks_started ON checks (started);

-- Branches that landed. A row in state 'begun' says that the target may or may not have moved.
CREATE TABLE landings (
	seq      INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	agent    TEXT NOT NULL,
	task     TEXT NOT NULL DEFAULT '',
	repo     TEXT NOT NULL,
	target   TEXT NOT NULL,
	how      TEXT NOT NULL,            -- merge, squash, rebase, forward, push
	base     TEXT NOT NULL,            -- the merge base
	head     TEXT NOT NULL,            -- the commit of the branch
	tree     TEXT NOT NULL,
	before   TEXT NOT NULL,            -- the commit of target
	after    TEXT NOT NULL DEFAULT '',
	evidence TEXT NOT NULL DEFAULT '', -- the id of a check; '': unchecked
	state    TEXT NOT NULL,            -- begun, landed, pushed, undone, void
	undo     TEXT NOT NULL DEFAULT '', -- the commit of target after it was undone
	url      TEXT NOT NULL DEFAULT '', -- of the request to merge
	reason   TEXT NOT NULL DEFAULT '',
	asker    TEXT NOT NULL DEFAULT '',
	started  INTEGER NOT NULL,
	ended    INTEGER NOT NULL DEFAULT 0,
	undone   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX landings_agent ON landings (agent, started);
CREATE INDEX landings_task ON landings (task) WHERE task <> '';
CREATE INDEX landings_started ON landings (started);

-- Remarks on lines of a branch, until they are sent to its agent in one message.
CREATE TABLE comments (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	agent   TEXT NOT NULL,
	file    TEXT NOT NULL,
	line    INTEGER NOT NULL,
	old     INTEGER NOT NULL DEFAULT 0, -- 1: of the line as it was at the merge base
	head    TEXT NOT NULL,
	excerpt TEXT NOT NULL DEFAULT '',
	text    TEXT NOT NULL,
	author  TEXT NOT NULL,
	state   TEXT NOT NULL,              -- pending, sent, dropped
	message TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL,
	ended   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX comments_pending ON comments (agent, seq) WHERE state = 'pending';
CREATE INDEX comments_created ON comments (created);

-- One row per request to a model, from what the agent's program has written.
CREATE TABLE turns (
	seq         INTEGER PRIMARY KEY,
	source      TEXT NOT NULL,          -- claude, codex
	key         TEXT NOT NULL,          -- the program's own id of it
	agent       TEXT NOT NULL,
	thread      TEXT NOT NULL DEFAULT '',
	prompt      TEXT NOT NULL DEFAULT '', -- the program's own id of what it answers
	message     TEXT NOT NULL DEFAULT '', -- what the turn was about, if that is known
	task        TEXT NOT NULL DEFAULT '',
	model       TEXT NOT NULL DEFAULT '',
	input       INTEGER NOT NULL,       -- tokens; none is counted in two columns
	output      INTEGER NOT NULL,
	cache_read  INTEGER NOT NULL,
	cache_write INTEGER NOT NULL,
	nano        INTEGER,                -- what it cost, in thousand millionths of the currency; NULL: not known
	priced      TEXT NOT NULL DEFAULT '', -- stated, table
	time        INTEGER NOT NULL,
	UNIQUE (source, key)
) STRICT;
CREATE INDEX turns_time ON turns (time);
CREATE INDEX turns_agent ON turns (agent, time);
CREATE INDEX turns_task ON turns (task, time) WHERE task <> '';
CREATE INDEX turns_thread ON turns (thread, prompt);
CREATE INDEX turns_unpriced ON turns (model, seq) WHERE nano IS NULL;

-- What a program has stated last of all that a conversation used of a model.
CREATE TABLE turns_stated (
	source      TEXT NOT NULL,
	thread      TEXT NOT NULL,
	model       TEXT NOT NULL,
	input       INTEGER NOT NULL,
	output      INTEGER NOT NULL,
	cache_read  INTEGER NOT NULL,
	cache_write INTEGER NOT NULL,
	nano        INTEGER NOT NULL,
	upto        INTEGER NOT NULL,       -- the last turn on record then, by its seq
	time        INTEGER NOT NULL,
	PRIMARY KEY (source, thread, model)
) STRICT, WITHOUT ROWID;

-- How far a file of turns has been read. A file is the one with that number, whatever its name is.
CREATE TABLE turn_files (
	device  INTEGER NOT NULL,
	inode   INTEGER NOT NULL,
	path    TEXT NOT NULL,
	agent   TEXT NOT NULL,
	thread  TEXT NOT NULL DEFAULT '',
	offset  INTEGER NOT NULL,
	head    TEXT NOT NULL DEFAULT '',   -- digest of its beginning: another file may get the same number
	state   TEXT NOT NULL DEFAULT '',   -- the reader's
	changed INTEGER NOT NULL,
	PRIMARY KEY (device, inode)
) STRICT, WITHOUT ROWID;

-- The conversations of agents. A session knows only its last one.
CREATE TABLE threads (
	thread  TEXT PRIMARY KEY,
	agent   TEXT NOT NULL,
	runtime TEXT NOT NULL,
	first   INTEGER NOT NULL,           -- the start of the first session that had it
	last    INTEGER NOT NULL            -- when it was heard of last
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_last ON threads (last);
CREATE TRIGGER sessions_thread_made AFTER INSERT ON sessions WHEN new.thread <> '' BEGIN
	INSERT INTO threads (thread, agent, runtime, first, last) VALUES (new.thread, new.actor, new.runtime, new.started, max(new.started, new.changed))
	ON CONFLICT (thread) DO UPDATE SET agent = iif(excluded.last >= last, excluded.agent, agent), runtime = iif(excluded.runtime = '', runtime, excluded.runtime),
		first = min(first, excluded.first), last = max(last, excluded.last);
END;
CREATE TRIGGER sessions_thread_changed AFTER UPDATE ON sessions
	WHEN new.thread <> '' AND (new.thread <> old.thread OR new.runtime <> old.runtime OR new.started <> old.started) BEGIN
	INSERT INTO threads (thread, agent, runtime, first, last) VALUES (new.thread, new.actor, new.runtime, new.started, max(new.started, new.changed))
	ON CONFLICT (thread) DO UPDATE SET agent = iif(excluded.last >= last, excluded.agent, agent), runtime = iif(excluded.runtime = '', runtime, excluded.runtime),
		first = min(first, excluded.first), last = max(last, excluded.last);
END;
INSERT INTO threads (thread, agent, runtime, first, last)
	SELECT thread, actor, max(runtime), min(started), max(max(started, changed)) FROM sessions WHERE thread <> '' GROUP BY thread;

-- What a period has reached of its budget, what was said of that, and what the owner allowed on top.
CREATE TABLE budgets (
	scope   TEXT NOT NULL,              -- day, agent, task
	about   TEXT NOT NULL,              -- the agent, the task; '' is all agents
	period  TEXT NOT NULL,              -- a day; '' is all time
	reached INTEGER NOT NULL DEFAULT 0, -- 80, 100: percent of the limit
	told    INTEGER NOT NULL DEFAULT 0, -- what of that the owner was told
	refused INTEGER NOT NULL DEFAULT 0, -- the owner said that it stays so
	extra_tokens INTEGER NOT NULL DEFAULT 0,
	extra_nano   INTEGER NOT NULL DEFAULT 0,
	changed INTEGER NOT NULL,
	PRIMARY KEY (scope, about, period)
) STRICT, WITHOUT ROWID;
