-- Saved approvals belong to a place, not to what a repository says about itself. Rows of older
-- versions have none: they are listed, and allow nothing.
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
INSERT INTO approval (id, project_id, place, directory, session_id, agent, action, resource)
    SELECT id, project_id, '', '', '', '', action, resource FROM saved_permission ORDER BY rowid;
DROP TABLE saved_permission;
