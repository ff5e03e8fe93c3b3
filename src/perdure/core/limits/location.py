"""What a Location reads: configuration, agents, commands, skills, references, instructions."""

from typing import Final

# Locations: what they read when they open, and how long they stay.
CONFIG_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
CONFIG_SUBSTITUTED_CHARS_MAX: Final = 4 * 1024 * 1024  # put in by the placeholders of one file
CONFIG_PROBLEMS_MAX: Final = 100  # of one file; the rest is counted
GIT_FILE_BYTES_MAX: Final = 1024 * 1024
GIT_SECONDS_MAX: Final = 5
LOCATION_IDLE_SECONDS_MAX: Final = 60 * 60
LOCATIONS_OPEN_MAX: Final = 256
PROJECTS_REMEMBERED_MAX: Final = 1_024

# What people granted to the configuration of projects; about 200 bytes each.
TRUST_FILE_BYTES_MAX: Final = 4 * 1024 * 1024

# Agents and commands in Markdown files.
FRONT_MATTER_NESTING_MAX: Final = 32
AGENT_FILE_BYTES_MAX: Final = 256 * 1024
AGENT_FILES_MAX: Final = 1_000  # in one config directory
AGENT_FOLDERS_MAX: Final = 200
AGENT_ENTRIES_MAX: Final = 10_000  # of one folder that are looked at
COMMAND_FILE_BYTES_MAX: Final = 256 * 1024
COMMAND_FILES_MAX: Final = 1_000  # in one folder
COMMAND_FOLDERS_MAX: Final = 200
COMMAND_ENTRIES_MAX: Final = 10_000  # of one folder that are looked at

# System Context: what is told again and again, so its size is paid for with every request.
INSTRUCTION_FILE_BYTES_MAX: Final = 256 * 1024
INSTRUCTIONS_DISCOVERED_MAX: Final = 100  # of one Session
INSTRUCTION_FILES_MAX: Final = 100  # that one pattern stands for
INSTRUCTION_WALK_SECONDS: Final = 30  # between two walks through a tree
INSTRUCTION_PAGE_SECONDS: Final = 600  # until a page is fetched again
INSTRUCTION_FETCH_SECONDS_MAX: Final = 10
CONTEXT_GUEST_BYTES_MAX: Final = 64 * 1024
CONTEXT_GUEST_SECONDS_MAX: Final = 5
CONTEXT_DESCRIPTION_CHARS_MAX: Final = 1_024  # of a skill or a reference

# Skills. What is listed is told with every request; what is watched is looked at before each.
SKILL_FILE_BYTES_MAX: Final = 256 * 1024
SKILL_NAME_CHARS_MAX: Final = 128
SKILLS_MAX: Final = 256  # of one Location
SKILL_DIRECTORIES_MAX: Final = 1_000  # of one source
SKILL_DIRECTORY_ENTRIES_MAX: Final = 10_000  # of one source
SKILL_SETTLED_SECONDS: Final = 2
"""A file system may stamp two changes within this time alike; a look is trusted only after it."""
SKILL_RULESETS_KEPT_MAX: Final = 64
SKILL_FILES_SHOWN_MAX: Final = 10
SKILL_SHOWN_DIRECTORIES_MAX: Final = 50
SKILL_MATCHES_SHOWN_MAX: Final = 3

# Skills from the network.
SKILL_REFRESH_SECONDS: Final = 10 * 60
SKILL_RETRIES_MAX: Final = 2
SKILL_RETRY_SECONDS: Final = 1
SKILL_REQUEST_SECONDS_MAX: Final = 30
SKILL_REFRESH_SECONDS_MAX: Final = 5 * 60  # of one refresh, whatever the server does
SKILL_INDEX_BYTES_MAX: Final = 1024 * 1024
SKILL_DOWNLOAD_FILES_MAX: Final = 200  # of one skill
SKILL_DOWNLOAD_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
SKILL_DOWNLOAD_BYTES_MAX: Final = 16 * 1024 * 1024  # of one skill
SKILL_LEFTOVER_SECONDS: Final = 60 * 60  # after this what a dead process was fetching is removed

# Repositories that are named as references.
REPOSITORY_REFRESH_SECONDS: Final = 60 * 60
REPOSITORY_SECONDS_MAX: Final = 10 * 60  # of one refresh, whatever the server does
REPOSITORY_REASON_CHARS_MAX: Final = 400
