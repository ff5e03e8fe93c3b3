"""Limits on what a Location reads: configuration, agents, commands, skills, instructions."""

from typing import Final

# Locations: what they read when they open, and how long they stay open.
CONFIG_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
CONFIG_SUBSTITUTED_CHARS_MAX: Final = 4 * 1024 * 1024  # inserted by the placeholders of one file
CONFIG_PROBLEMS_MAX: Final = 100  # reported per file; the rest are only counted
GIT_FILE_BYTES_MAX: Final = 1024 * 1024
GIT_SECONDS_MAX: Final = 5
LOCATION_IDLE_SECONDS_MAX: Final = 60 * 60
LOCATIONS_OPEN_MAX: Final = 256
PROJECTS_REMEMBERED_MAX: Final = 1_024
PROJECT_PLACES_MAX: Final = 5_000  # directories of Sessions that are listed by project

# The file of trust grants for project configurations; about 200 bytes per grant.
TRUST_FILE_BYTES_MAX: Final = 4 * 1024 * 1024

# Version control, for clients.
VCS_SECONDS_MAX: Final = 30  # per call of git; the first comparison of a large tree is slow
VCS_DIFF_BYTES_MAX: Final = 8 * 1024 * 1024  # of all patches; files beyond are listed without one
VCS_CALLS_PARALLEL_MAX: Final = 4

# Agents and commands in Markdown files.
FRONT_MATTER_NESTING_MAX: Final = 32
AGENT_FILE_BYTES_MAX: Final = 256 * 1024
AGENT_FILES_MAX: Final = 1_000  # per config directory
AGENT_FOLDERS_MAX: Final = 200
AGENT_ENTRIES_MAX: Final = 10_000  # examined per folder
COMMAND_FILE_BYTES_MAX: Final = 256 * 1024
COMMAND_FILES_MAX: Final = 1_000  # per folder
COMMAND_FOLDERS_MAX: Final = 200
COMMAND_ENTRIES_MAX: Final = 10_000  # examined per folder

# System Context. It is sent with every request, so its size costs tokens each time.
INSTRUCTION_FILE_BYTES_MAX: Final = 256 * 1024
INSTRUCTIONS_DISCOVERED_MAX: Final = 100  # per Session
INSTRUCTION_FILES_MAX: Final = 100  # matched by one pattern
INSTRUCTION_WALK_SECONDS: Final = 30  # between two scans of a tree
INSTRUCTION_PAGE_SECONDS: Final = 600  # before a page is fetched again
INSTRUCTION_FETCH_SECONDS_MAX: Final = 10
CONTEXT_GUEST_BYTES_MAX: Final = 64 * 1024
CONTEXT_GUEST_SECONDS_MAX: Final = 5
CONTEXT_DESCRIPTION_CHARS_MAX: Final = 1_024  # of a skill or a reference

# Skills. The list is sent with every request, and watched sources are checked before each one.
SKILL_FILE_BYTES_MAX: Final = 256 * 1024
SKILL_NAME_CHARS_MAX: Final = 128
SKILLS_MAX: Final = 256  # per Location
SKILL_DIRECTORIES_MAX: Final = 1_000  # per source
SKILL_DIRECTORY_ENTRIES_MAX: Final = 10_000  # per source
SKILL_SETTLED_SECONDS: Final = 2
"""Two changes within this time may get the same timestamp; a scan is trusted only after it."""
SKILL_RULESETS_KEPT_MAX: Final = 64
SKILL_FILES_SHOWN_MAX: Final = 10
SKILL_SHOWN_DIRECTORIES_MAX: Final = 50
SKILL_MATCHES_SHOWN_MAX: Final = 3

# Skills from the network.
SKILL_REFRESH_SECONDS: Final = 10 * 60
SKILL_RETRIES_MAX: Final = 2
SKILL_RETRY_SECONDS: Final = 1
SKILL_REQUEST_SECONDS_MAX: Final = 30
SKILL_REFRESH_SECONDS_MAX: Final = 5 * 60  # for one whole refresh
SKILL_INDEX_BYTES_MAX: Final = 1024 * 1024
SKILL_DOWNLOAD_FILES_MAX: Final = 200  # per skill
SKILL_DOWNLOAD_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
SKILL_DOWNLOAD_BYTES_MAX: Final = 16 * 1024 * 1024  # per skill
SKILL_LEFTOVER_SECONDS: Final = 60 * 60  # age at which a dead process's download is removed

# Repositories used as references.
REPOSITORY_REFRESH_SECONDS: Final = 60 * 60
REPOSITORY_SECONDS_MAX: Final = 10 * 60  # for one whole refresh
REPOSITORY_REASON_CHARS_MAX: Final = 400

# How often the trust of open Locations is looked at while clients listen.
TRUST_LOOK_SECONDS: Final = 1.0
