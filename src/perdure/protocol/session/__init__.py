"""Endpoints for Sessions, their messages, inbox, usage, jobs and reverts."""
