CREATE TABLE event (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    location INTEGER,
    data BLOB NOT NULL,
    UNIQUE (session_id, seq)
);
CREATE UNIQUE INDEX event_supplied_id ON event (id) WHERE length(id) <> 30;
CREATE TABLE event_owner (
    session_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE location (
    number INTEGER PRIMARY KEY,
    ref TEXT NOT NULL UNIQUE
);
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
CREATE INDEX session_message_compaction ON session_message (session_id, seq) WHERE type = 'compaction';
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
CREATE TABLE todo (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
CREATE TABLE session_context_epoch (
    session_id TEXT NOT NULL PRIMARY KEY,
    baseline TEXT NOT NULL,
    baseline_seq INTEGER NOT NULL,
    snapshot TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE session_instruction (
    session_id TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;
CREATE TABLE session_retry (
    session_id TEXT NOT NULL PRIMARY KEY,
    failed INTEGER NOT NULL,
    due INTEGER NOT NULL,
    delay INTEGER NOT NULL,
    step INTEGER NOT NULL,
    message TEXT NOT NULL
, waited INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE session_attempt (
    session_id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    step INTEGER NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0,
    waits TEXT,
    abandoned INTEGER NOT NULL DEFAULT 0
, woken INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
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
CREATE TABLE session_deletion (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE session_interrupt (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE process (
    name TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE session_wake (
    session_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE session_notice (
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    text TEXT NOT NULL,
    time_created INTEGER NOT NULL
);
CREATE INDEX session_notice_pending ON session_notice (session_id, time_created, id);
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
CREATE INDEX child_task_open ON child_task (session_id) WHERE state IN ('waiting', 'ended');
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
CREATE TABLE pending_request (
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    session_id TEXT NOT NULL,
    location TEXT NOT NULL,
    process TEXT NOT NULL,
    data BLOB NOT NULL,
    answer BLOB
, message_id TEXT, call_id TEXT, shown TEXT, used INTEGER NOT NULL DEFAULT 0);
CREATE INDEX pending_request_session ON pending_request (session_id);
CREATE TABLE model_rest (
    provider_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (provider_id, model_id)
) WITHOUT ROWID;
CREATE TABLE provider_request (
    id INTEGER NOT NULL PRIMARY KEY,
    provider_id TEXT NOT NULL,
    process TEXT NOT NULL,
    begun INTEGER NOT NULL,
    ended INTEGER,
    tokens INTEGER NOT NULL
);
CREATE INDEX provider_request_provider ON provider_request (provider_id);
CREATE TABLE approval (
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    -- The key of the place; `*` for all places, empty for a row of an older version.
    place TEXT NOT NULL,
    directory TEXT NOT NULL,
    -- The Session and the agent that it is for; empty for all.
    session_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    time_expires INTEGER,
    UNIQUE (place, session_id, agent, action, resource, project_id)
);
CREATE INDEX approval_project ON approval (project_id);
CREATE TABLE mcp_tool_list (
    digest TEXT NOT NULL UNIQUE,
    data TEXT NOT NULL,
    time_used INTEGER NOT NULL
);
CREATE TABLE mcp_server (
    digest TEXT NOT NULL UNIQUE,
    list TEXT NOT NULL
);
INSERT INTO event VALUES ('ses_museum_full', 0, 'evt_1a1e188b3b20OPlEtC3aVNUCtC', 'session.created.1', 1, CAST('{"sessionID":"ses_museum_full","info":{"id":"ses_museum_full","slug":"green-lake","projectID":"global","directory":"/museum/project","path":"","title":"New session - 2026-11-15T23:26:34.930Z","version":"0.1.0","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1794785194930,"updated":1794785194930}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 1, 'evt_1a1e188b3c0075y5pDLjwWCfEr', 'session.next.prompt.admitted.1', 1, CAST('{"timestamp":1794785194944,"sessionID":"ses_museum_full","messageID":"msg_museum_1","prompt":{"text":"Which files are here?"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 2, 'evt_1a1e188b3d40pmAwlEdtNev7aW', 'session.next.prompted.1', 1, CAST('{"timestamp":1794785194944,"sessionID":"ses_museum_full","messageID":"msg_museum_1","prompt":{"text":"Which files are here?"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 3, 'evt_1a1e188b3e00H8aedHECFwM2Hq', 'session.next.step.started.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","agent":"build","model":{"id":"fake-model","providerID":"fake"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 4, 'evt_1a1e188b3e01zonVZIWLh54UdV', 'session.next.tool.input.started.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_0","name":"glob"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 5, 'evt_1a1e188b3e02iV0MVJoV8DmwzA', 'session.next.tool.input.started.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_1","name":"nothing"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 6, 'evt_1a1e188b3e03RBDDRL6eZMVPKp', 'session.next.tool.input.ended.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_0","text":"{\"pattern\":\"*.txt\"}"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 7, 'evt_1a1e188b3e049rQ4NMOo0VDrgU', 'session.next.tool.called.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_0","tool":"glob","input":{"pattern":"*.txt"},"provider":{"executed":false}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 8, 'evt_1a1e188b3e05sXcvJNgxRdwK29', 'session.next.tool.input.ended.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_1","text":"{}"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 9, 'evt_1a1e188b3e06bDpmFOz6smemNo', 'session.next.tool.called.1', 1, CAST('{"timestamp":1794785194976,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_1","tool":"nothing","input":{},"provider":{"executed":false}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 10, 'evt_1a1e188b3e40Ju2dBQHGJvNEjT', 'session.next.tool.failed.1', 1, CAST('{"timestamp":1794785194979,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_1","error":{"type":"unknown","message":"Unknown tool: nothing"},"provider":{"executed":false},"result":{"type":"error","value":"Unknown tool: nothing"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 11, 'evt_1a1e188b42f02aFU7RZPl45h58', 'session.next.tool.success.1', 1, CAST('{"timestamp":1794785195055,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","callID":"call_0","structured":{"entries":[{"path":"one.txt","type":"file"}],"truncated":false},"content":[{"type":"text","text":"/museum/project/one.txt"}],"provider":{"executed":false},"outputPaths":[]}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 12, 'evt_1a1e188b42f1lGSL3SrZCCo9Qn', 'session.next.step.ended.2', 1, CAST('{"timestamp":1794785195055,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b3de0YSNnhFw2ondZwB","finish":"tool-calls","cost":0.00041,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 13, 'evt_1a1e188b4330Ccs2vVRs4UF487', 'session.next.step.started.1', 1, CAST('{"timestamp":1794785195059,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4320TwfBzU9idLWbmS","agent":"build","model":{"id":"fake-model","providerID":"fake"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 14, 'evt_1a1e188b4331vJ4trWk1VcxWTm', 'session.next.text.started.1', 1, CAST('{"timestamp":1794785195059,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4320TwfBzU9idLWbmS","textID":"text-0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 15, 'evt_1a1e188b4332dzHknY2AwlfypR', 'session.next.text.ended.1', 1, CAST('{"timestamp":1794785195059,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4320TwfBzU9idLWbmS","textID":"text-0","text":"Only one.txt."}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 16, 'evt_1a1e188b4333MfUbjZKKNuORB6', 'session.next.step.ended.2', 1, CAST('{"timestamp":1794785195059,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4320TwfBzU9idLWbmS","finish":"stop","cost":0.00041,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 17, 'evt_1a1e188b43d1o1uJbbudGBpLsQ', 'session.next.agent.switched.1', 1, CAST('{"timestamp":1794785195069,"sessionID":"ses_museum_full","messageID":"msg_1a1e188b43d05LhSfacTp36tWl","agent":"brief"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 18, 'evt_1a1e188b4451FOK1TeUw8TGGZk', 'session.next.model.switched.1', 1, CAST('{"timestamp":1794785195077,"sessionID":"ses_museum_full","messageID":"msg_1a1e188b4450Wi7AXdCmhKXoE5","model":{"id":"other-model","providerID":"fake"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 19, 'evt_1a1e188b4470y4WsPfn5ZbyivP', 'session.next.prompt.admitted.1', 1, CAST('{"timestamp":1794785195079,"sessionID":"ses_museum_full","messageID":"msg_museum_2","prompt":{"text":"And in other words? ☃"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 20, 'evt_1a1e188b44b1PQwaHiNORtPdcj', 'session.next.prompted.1', 1, CAST('{"timestamp":1794785195079,"sessionID":"ses_museum_full","messageID":"msg_museum_2","prompt":{"text":"And in other words? ☃"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 21, 'evt_1a1e188b44b2879RDjfXt285yO', 'session.next.context.updated.1', 1, CAST('{"timestamp":1794785195083,"sessionID":"ses_museum_full","messageID":"msg_1a1e188b44b0gkjjLh5F0khBH4","text":"You are the model fake/other-model from now on."}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 22, 'evt_1a1e188b44e0ZTZ95mFqlJZ0fi', 'session.next.step.started.1', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 23, 'evt_1a1e188b44e1I9m01nY0CSHT1N', 'session.next.reasoning.started.1', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","reasoningID":"reasoning-0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 24, 'evt_1a1e188b44e20pyqxoq9dazvN2', 'session.next.reasoning.ended.1', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","reasoningID":"reasoning-0","text":"thinking"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 25, 'evt_1a1e188b44e3jWBhtq8J4jiNih', 'session.next.text.started.1', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","textID":"text-0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 26, 'evt_1a1e188b44e4SCOYprQSVsQq4M', 'session.next.text.ended.1', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","textID":"text-0","text":"Naïve ☃ answer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 27, 'evt_1a1e188b44e5AsbPlsibx19IQ1', 'session.next.step.ended.2', 1, CAST('{"timestamp":1794785195086,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b44d0qnMI9kxhKAqYK3","finish":"stop","cost":0.0,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 28, 'evt_1a1e188b4520tYoGhu0lO9rklg', 'session.next.prompt.admitted.1', 1, CAST('{"timestamp":1794785195090,"sessionID":"ses_museum_full","messageID":"msg_museum_3","prompt":{"text":"Third"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 29, 'evt_1a1e188b4540cF17dvIupIaD7L', 'session.next.prompted.1', 1, CAST('{"timestamp":1794785195090,"sessionID":"ses_museum_full","messageID":"msg_museum_3","prompt":{"text":"Third"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 30, 'evt_1a1e188b45603bQpVxtDha17of', 'session.next.step.started.1', 1, CAST('{"timestamp":1794785195094,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4550KvDyZwb4GRIfT0","agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 31, 'evt_1a1e188b4561mHdgRzBN8ijaAK', 'session.next.text.started.1', 1, CAST('{"timestamp":1794785195094,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4550KvDyZwb4GRIfT0","textID":"text-0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 32, 'evt_1a1e188b4562UxqXO0TWZrS2Vz', 'session.next.text.ended.1', 1, CAST('{"timestamp":1794785195094,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4550KvDyZwb4GRIfT0","textID":"text-0","text":"## Goal\nsummary of it all"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 33, 'evt_1a1e188b4563De3OK1lg10AUre', 'session.next.step.ended.2', 1, CAST('{"timestamp":1794785195094,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4550KvDyZwb4GRIfT0","finish":"stop","cost":0.0,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 34, 'evt_1a1e188b45e0wKGFG33pS8sxDJ', 'session.next.prompt.admitted.1', 1, CAST('{"timestamp":1794785195102,"sessionID":"ses_museum_full","messageID":"msg_museum_4","prompt":{"text":"Fourth"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 35, 'evt_1a1e188b4600f0T6C4LytHbPYy', 'session.next.prompted.1', 1, CAST('{"timestamp":1794785195102,"sessionID":"ses_museum_full","messageID":"msg_museum_4","prompt":{"text":"Fourth"},"delivery":"steer"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 36, 'evt_1a1e188b4bc06Mso46wHlZ2KGI', 'session.next.step.started.1', 1, CAST('{"timestamp":1794785195195,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4ba0Ngfx85e8KQJrud","agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 37, 'evt_1a1e188b4bc1p35f08ERChkmbx', 'session.next.text.started.1', 1, CAST('{"timestamp":1794785195195,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4ba0Ngfx85e8KQJrud","textID":"text-0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 38, 'evt_1a1e188b4bc2XjIVw9WadqTExc', 'session.next.text.ended.1', 1, CAST('{"timestamp":1794785195195,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4ba0Ngfx85e8KQJrud","textID":"text-0","text":"third"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 39, 'evt_1a1e188b4bc3GPVMsAok4zBhJH', 'session.next.step.ended.2', 1, CAST('{"timestamp":1794785195195,"sessionID":"ses_museum_full","assistantMessageID":"msg_1a1e188b4ba0Ngfx85e8KQJrud","finish":"stop","cost":0.0,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 40, 'evt_1a1e188b4bf0z5iDoC6tW7u9ew', 'session.next.revert.staged.1', 1, CAST('{"timestamp":1794785195199,"sessionID":"ses_museum_full","revert":{"messageID":"msg_museum_4"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 41, 'evt_1a1e188b4c00hlv4kDP2xGcc0b', 'session.next.revert.cleared.1', 1, CAST('{"timestamp":1794785195200,"sessionID":"ses_museum_full"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 42, 'evt_1a1e188b4c30QS7vgEhCOPL4MG', 'session.next.revert.staged.1', 1, CAST('{"timestamp":1794785195203,"sessionID":"ses_museum_full","revert":{"messageID":"msg_1a1e188b4550KvDyZwb4GRIfT0"}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_full', 43, 'evt_1a1e188b4c4098KmcFzLpY3Whv', 'session.next.revert.committed.1', 1, CAST('{"timestamp":1794785195204,"sessionID":"ses_museum_full","messageID":"msg_1a1e188b4550KvDyZwb4GRIfT0"}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_waiting', 0, 'evt_1a1e188b4c60roXdYHHVGglz3a', 'session.created.1', 1, CAST('{"sessionID":"ses_museum_waiting","info":{"id":"ses_museum_waiting","slug":"clear-cedar","projectID":"global","directory":"/museum/project","path":"","title":"New session - 2026-11-15T23:26:35.206Z","version":"0.1.0","cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1794785195206,"updated":1794785195206}}}' AS BLOB));
INSERT INTO event VALUES ('ses_museum_waiting', 1, 'evt_1a1e188b4c70aUkUUIZehpURPF', 'session.next.prompt.admitted.1', 1, CAST('{"timestamp":1794785195207,"sessionID":"ses_museum_waiting","messageID":"msg_museum_later","prompt":{"text":"Later"},"delivery":"queue"}' AS BLOB));
INSERT INTO location VALUES (1, '{"directory":"/museum/project"}');
INSERT INTO session VALUES ('ses_museum_full', 'global', '/museum/project', NULL, '', 'Which files are here?', 1794785194930, 0, 0, NULL, CAST('{"id":"ses_museum_full","projectID":"global","cost":0.00082,"tokens":{"input":500,"output":125,"reasoning":25,"cache":{"read":100,"write":0}},"time":{"created":1794785194930,"updated":1794785195204},"title":"Which files are here?","location":{"directory":"/museum/project"},"agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"}}' AS BLOB));
INSERT INTO session VALUES ('ses_museum_waiting', 'global', '/museum/project', NULL, '', 'New session - 2026-11-15T23:26:35.206Z', 1794785195206, 0, 0, NULL, CAST('{"id":"ses_museum_waiting","projectID":"global","cost":0.0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1794785195206,"updated":1794785195206},"title":"New session - 2026-11-15T23:26:35.206Z","location":{"directory":"/museum/project"}}' AS BLOB));
INSERT INTO session_message VALUES ('msg_museum_1', 'ses_museum_full', 2, 'user', 1794785194944, CAST('{"type":"user","id":"msg_museum_1","time":{"created":1794785194944},"text":"Which files are here?"}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b3de0YSNnhFw2ondZwB', 'ses_museum_full', 3, 'assistant', 1794785194976, CAST('{"type":"assistant","id":"msg_1a1e188b3de0YSNnhFw2ondZwB","time":{"created":1794785194976,"completed":1794785195055},"agent":"build","model":{"id":"fake-model","providerID":"fake"},"content":[{"type":"tool","id":"call_0","name":"glob","state":{"status":"completed","input":{"pattern":"*.txt"},"content":[{"type":"text","text":"/museum/project/one.txt"}],"outputPaths":[],"structured":{"entries":[{"path":"one.txt","type":"file"}],"truncated":false}},"time":{"created":1794785194976,"ran":1794785194976,"completed":1794785195055},"provider":{"executed":false}},{"type":"tool","id":"call_1","name":"nothing","state":{"status":"error","input":{},"content":[],"structured":{},"error":{"type":"unknown","message":"Unknown tool: nothing"},"result":{"type":"error","value":"Unknown tool: nothing"}},"time":{"created":1794785194976,"ran":1794785194976,"completed":1794785194979},"provider":{"executed":false}}],"finish":"tool-calls","cost":0.00041,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b4320TwfBzU9idLWbmS', 'ses_museum_full', 13, 'assistant', 1794785195059, CAST('{"type":"assistant","id":"msg_1a1e188b4320TwfBzU9idLWbmS","time":{"created":1794785195059,"completed":1794785195059},"agent":"build","model":{"id":"fake-model","providerID":"fake"},"content":[{"type":"text","id":"text-0","text":"Only one.txt."}],"finish":"stop","cost":0.00041,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b43d05LhSfacTp36tWl', 'ses_museum_full', 17, 'agent-switched', 1794785195069, CAST('{"type":"agent-switched","id":"msg_1a1e188b43d05LhSfacTp36tWl","time":{"created":1794785195069},"agent":"brief"}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b4450Wi7AXdCmhKXoE5', 'ses_museum_full', 18, 'model-switched', 1794785195077, CAST('{"type":"model-switched","id":"msg_1a1e188b4450Wi7AXdCmhKXoE5","time":{"created":1794785195077},"model":{"id":"other-model","providerID":"fake"}}' AS BLOB));
INSERT INTO session_message VALUES ('msg_museum_2', 'ses_museum_full', 20, 'user', 1794785195079, CAST('{"type":"user","id":"msg_museum_2","time":{"created":1794785195079},"text":"And in other words? ☃"}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b44b0gkjjLh5F0khBH4', 'ses_museum_full', 21, 'system', 1794785195083, CAST('{"type":"system","id":"msg_1a1e188b44b0gkjjLh5F0khBH4","time":{"created":1794785195083},"text":"You are the model fake/other-model from now on."}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b44d0qnMI9kxhKAqYK3', 'ses_museum_full', 22, 'assistant', 1794785195086, CAST('{"type":"assistant","id":"msg_1a1e188b44d0qnMI9kxhKAqYK3","time":{"created":1794785195086,"completed":1794785195086},"agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"},"content":[{"type":"reasoning","id":"reasoning-0","text":"thinking","time":{"created":1794785195086,"completed":1794785195086}},{"type":"text","id":"text-0","text":"Naïve ☃ answer"}],"finish":"stop","cost":0.0,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO session_message VALUES ('msg_museum_3', 'ses_museum_full', 29, 'user', 1794785195090, CAST('{"type":"user","id":"msg_museum_3","time":{"created":1794785195090},"text":"Third"}' AS BLOB));
INSERT INTO session_message VALUES ('msg_1a1e188b4550KvDyZwb4GRIfT0', 'ses_museum_full', 30, 'assistant', 1794785195094, CAST('{"type":"assistant","id":"msg_1a1e188b4550KvDyZwb4GRIfT0","time":{"created":1794785195094,"completed":1794785195094},"agent":"brief","model":{"id":"other-model","providerID":"fake","variant":"default"},"content":[{"type":"text","id":"text-0","text":"## Goal\nsummary of it all"}],"finish":"stop","cost":0.0,"tokens":{"input":100,"output":25,"reasoning":5,"cache":{"read":20,"write":0}}}' AS BLOB));
INSERT INTO session_input VALUES ('msg_museum_1', 'ses_museum_full', 'steer', 1, 2, NULL, 1, 1, 1794785194944);
INSERT INTO session_input VALUES ('msg_museum_2', 'ses_museum_full', 'steer', 19, 20, NULL, 19, 19, 1794785195079);
INSERT INTO session_input VALUES ('msg_museum_3', 'ses_museum_full', 'steer', 28, 29, NULL, 28, 28, 1794785195090);
INSERT INTO session_input VALUES ('msg_museum_later', 'ses_museum_waiting', 'queue', 1, NULL, NULL, 1, 1, 1794785195207);
INSERT INTO session_attempt VALUES ('ses_museum_waiting', 'owed', 1, 0, NULL, 0, 1);
INSERT INTO session_lease VALUES ('ses_museum_full', '', 1);
PRAGMA application_id = 1346720324;
PRAGMA user_version = 5;
