-- The sequence at which a run was asked for last, 0 if that was before the last boundary or interrupt.
-- A row now also stands for a run that is owed and has yet to begin. What waits in a database of
-- before counts as asked for.
ALTER TABLE session_attempt ADD COLUMN woken INTEGER NOT NULL DEFAULT 0;
INSERT OR IGNORE INTO session_attempt (session_id, state, step, woken)
    SELECT DISTINCT session_id, 'owed', 1, 1 FROM session_input
    WHERE promoted_seq IS NULL AND cancelled_seq IS NULL;
INSERT OR IGNORE INTO session_attempt (session_id, state, step, woken)
    SELECT DISTINCT n.session_id, 'owed', 1, 1 FROM session_notice AS n
    JOIN session AS s ON s.id = n.session_id WHERE s.archived = 0;

-- The tool call that waits for the answer, the digest of what was shown of it, and whether the call
-- has gone on with the answer.
ALTER TABLE pending_request ADD COLUMN message_id TEXT;
ALTER TABLE pending_request ADD COLUMN call_id TEXT;
ALTER TABLE pending_request ADD COLUMN shown TEXT;
ALTER TABLE pending_request ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE pending_request SET
    message_id = coalesce(
        json_extract(CAST(data AS TEXT), '$.source.messageID'),
        json_extract(CAST(data AS TEXT), '$.tool.messageID')),
    call_id = coalesce(
        json_extract(CAST(data AS TEXT), '$.source.callID'),
        json_extract(CAST(data AS TEXT), '$.tool.callID'))
    WHERE json_valid(CAST(data AS TEXT));
