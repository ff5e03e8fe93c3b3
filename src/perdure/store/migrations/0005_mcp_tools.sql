-- Lists of tools that MCP servers had, by digest of their content. Operational: an epoch of a
-- Session names the list that its definitions come from, and a list is offered while its server
-- starts.
CREATE TABLE mcp_tool_list (
    digest TEXT NOT NULL UNIQUE,
    data TEXT NOT NULL,
    time_used INTEGER NOT NULL
);
-- The newest list of each server, by digest of what is started or connected to.
CREATE TABLE mcp_server (
    digest TEXT NOT NULL UNIQUE,
    list TEXT NOT NULL
);
