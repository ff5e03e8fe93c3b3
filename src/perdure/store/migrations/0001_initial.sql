-- The log. `data` is the public JSON of the event.
CREATE TABLE event (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    location INTEGER,
    data BLOB NOT NULL,
    UNIQUE (session_id, seq)
);
-- Ids made here cannot collide; ids made by callers (see ids.event_from_external) can.
CREATE UNIQUE INDEX event_supplied_id ON event (id) WHERE length(id) <> 30;

-- The owner of an imported log.
CREATE TABLE event_owner (
    session_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL
) WITHOUT ROWID;

-- The few Locations that events name by number.
CREATE TABLE location (
    number INTEGER PRIMARY KEY,
    ref TEXT NOT NULL UNIQUE
);

-- Projections: dropped and rebuilt from the log at will.
CREATE TABLE session (
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    directory TEXT NOT NULL,
    workspace_id TEXT,
    subpath TEXT NOT NULL,
    title TEXT NOT NULL,
    time_created INTEGER NOT NULL,
    reverting INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    parent_id TEXT,
    data BLOB NOT NULL
);
CREATE INDEX session_created ON session (time_created, id);
-- Nearly always empty, so that every admission can query it.
CREATE INDEX session_reverting ON session (id) WHERE reverting = 1;
CREATE INDEX session_parent ON session (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE session_message (
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    time_created INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session_id, seq)
);
-- The only lookup by type that a turn makes: where Session History is cut.
CREATE INDEX session_message_compaction ON session_message (session_id, seq) WHERE type = 'compaction';

-- The prompt itself stays in the event at `prompt_seq`. Pending prompts are promoted by `place`.
CREATE TABLE session_input (
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    delivery TEXT NOT NULL,
    admitted_seq INTEGER NOT NULL,
    promoted_seq INTEGER,
    cancelled_seq INTEGER,
    prompt_seq INTEGER NOT NULL,
    place INTEGER NOT NULL,
    time_created INTEGER NOT NULL
);
CREATE INDEX session_input_pending ON session_input (session_id, delivery, place)
    WHERE promoted_seq IS NULL AND cancelled_seq IS NULL;

-- Which event holds a Session's todo list, and the message that wrote it. The newest row counts.
CREATE TABLE todo (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- Operational state: not in the log, written in the transaction of the event it belongs to.
CREATE TABLE session_context_epoch (
    session_id TEXT NOT NULL PRIMARY KEY,
    baseline TEXT NOT NULL,
    baseline_seq INTEGER NOT NULL,
    snapshot TEXT NOT NULL
) WITHOUT ROWID;

-- Instruction files that a Session discovered next to files it has read.
CREATE TABLE session_instruction (
    session_id TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;

-- Turns that wait for a retry, until just before the request is sent again.
CREATE TABLE session_retry (
    session_id TEXT NOT NULL PRIMARY KEY,
    failed INTEGER NOT NULL,
    due INTEGER NOT NULL,
    delay INTEGER NOT NULL,
    step INTEGER NOT NULL,
    message TEXT NOT NULL
) WITHOUT ROWID;

-- The state of a run's unfinished request, and whether a user must decide about it.
CREATE TABLE session_attempt (
    session_id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    step INTEGER NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0,
    waits TEXT,
    abandoned INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- File changes of each step, in order, written before the change. `snapshot` names all of them up
-- to this one.
CREATE TABLE session_file_change (
    number INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    root TEXT NOT NULL,
    path TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    snapshot TEXT NOT NULL
);
CREATE INDEX session_file_change_session ON session_file_change (session_id, number);

-- Files that a staged revert has changed. While a change is in progress, `next` is its target and
-- `process` the process that makes it.
CREATE TABLE session_revert_file (
    session_id TEXT NOT NULL,
    path TEXT NOT NULL,
    root TEXT NOT NULL,
    base TEXT NOT NULL,
    staged TEXT,
    next TEXT,
    process TEXT,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;

CREATE TABLE session_lease (
    session_id TEXT NOT NULL PRIMARY KEY,
    process TEXT NOT NULL,
    generation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_lease_process ON session_lease (process);

-- Sessions whose log ends with their deletion, until all their rows are removed.
CREATE TABLE session_deletion (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Processes that claimed work, until another process has taken it over after their death.
CREATE TABLE process (
    name TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- A run requested by a process that does not hold the Session's lease.
CREATE TABLE session_wake (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Notices for a Session; the id is that of the message it becomes.
CREATE TABLE session_notice (
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    text TEXT NOT NULL,
    time_created INTEGER NOT NULL
);
CREATE INDEX session_notice_pending ON session_notice (session_id, time_created, id);

-- An interrupt requested by a process that does not hold the Session's lease.
CREATE TABLE session_interrupt (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Tasks of child Sessions, their callers, and whether the result was delivered.
CREATE TABLE child_task (
    message_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    process TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX child_task_session ON child_task (session_id);
-- Nearly always empty, so that every start can query it.
CREATE INDEX child_task_open ON child_task (session_id) WHERE state IN ('waiting', 'ended');

-- Background jobs. `process` is the perdure process that watches; `pid` with `identity` is the job's.
CREATE TABLE job (
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    command TEXT NOT NULL,
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    pid INTEGER NOT NULL,
    identity TEXT NOT NULL,
    process TEXT NOT NULL,
    state TEXT NOT NULL,
    ending TEXT,
    quiet INTEGER NOT NULL DEFAULT 0,
    exit_code INTEGER,
    seen INTEGER NOT NULL DEFAULT 0,
    time_started INTEGER NOT NULL,
    time_ended INTEGER,
    deadline INTEGER NOT NULL
);
CREATE INDEX job_session ON job (session_id, time_started, id);
CREATE INDEX job_running ON job (session_id) WHERE state = 'running';

-- Permission rules that a user saved, by project.
CREATE TABLE saved_permission (
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    UNIQUE (project_id, action, resource)
);

-- Requests that wait for a user, and the process that waits.
CREATE TABLE pending_request (
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session_id TEXT NOT NULL,
    location TEXT NOT NULL,
    process TEXT NOT NULL,
    data BLOB NOT NULL,
    answer BLOB
);
CREATE INDEX pending_request_session ON pending_request (session_id);
