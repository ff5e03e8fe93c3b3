-- All waits of a request so far, in milliseconds: they are bounded together.
ALTER TABLE session_retry ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;

-- Models that are not asked for a while, because they refused or did not answer.
CREATE TABLE model_rest (
    provider_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (provider_id, model_id)
) WITHOUT ROWID;

-- Requests to providers with configured limits: those in progress, and those of the last minute.
CREATE TABLE provider_request (
    id INTEGER NOT NULL PRIMARY KEY,
    provider_id TEXT NOT NULL,
    process TEXT NOT NULL,
    begun INTEGER NOT NULL,
    ended INTEGER,
    tokens INTEGER NOT NULL
);
CREATE INDEX provider_request_provider ON provider_request (provider_id);
