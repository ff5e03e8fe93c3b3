"""Providers and models: facts about them, the way to them, and the credentials they ask for."""

from typing import Final

# Facts about models: those that come with the program, and those that are fetched anew.
MODELS_TRUSTED_SECONDS: Final = 5 * 60  # a copy this young is not fetched again
MODELS_REFRESH_SECONDS: Final = 60 * 60
MODELS_FETCH_SECONDS_MAX: Final = 60
MODELS_FETCH_BYTES_MAX: Final = 32 * 1024 * 1024
MODELS_LOCK_SECONDS: Final = 0.05  # between two looks whether another process has finished
MODEL_INDEX_BYTES_MAX: Final = 4 * 1024 * 1024
MODEL_PROVIDERS_MAX: Final = 2_000
MODELS_PER_PROVIDER_MAX: Final = 5_000

# How long a provider may take, unless its configuration says otherwise. Models may think long
# before their first word, and less long between two.
PROVIDER_CONNECT_SECONDS_MAX: Final = 30.0
PROVIDER_FIRST_BYTE_SECONDS_MAX: Final = 10 * 60.0
PROVIDER_IDLE_SECONDS_MAX: Final = 5 * 60.0

# Requests that failed before anything of an answer came: how often and after how long they are sent
# again. A provider that is only crowded is given more time than one that is broken.
RETRY_ATTEMPTS_MAX: Final = 3
RETRY_SECONDS_FIRST: Final = 0.5
RETRY_OVERLOAD_ATTEMPTS_MAX: Final = 6
RETRY_OVERLOAD_SECONDS_FIRST: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
RETRY_SPREAD: Final = 0.2  # of a wait, to either side
RETRY_AFTER_SECONDS_MAX: Final = 10 * 60  # a provider that asks for more is not waited for

# Stored credentials, and logins that a person finishes in a browser.
CREDENTIAL_CHARS_MAX: Final = 16 * 1024  # of one key or token; some tokens are signed documents
CREDENTIAL_LABEL_CHARS_MAX: Final = 200
CREDENTIAL_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
LOGIN_INPUT_CHARS_MAX: Final = 1_024
LOGIN_SECONDS_MAX: Final = 10 * 365 * 24 * 60 * 60  # a token said to live longer has no known end
LOGIN_RENEWED_AHEAD_SECONDS: Final = 5 * 60
LOGIN_RETRY_SECONDS: Final = 30  # until a renewal that failed is tried again, if nobody asks before
LOGIN_LOOK_SECONDS: Final = 60 * 60  # between two looks whether a login is to be renewed
LOGIN_ANSWER_BYTES_MAX: Final = 256 * 1024
LOGIN_ANSWER_SECONDS_MAX: Final = 30
GOOGLE_LOGIN_BYTES_MAX: Final = 64 * 1024  # what the Google Cloud tools write has a few hundred
LOGIN_LOCK_SECONDS: Final = 0.05  # between two looks whether another process has finished renewing
ATTEMPT_SECONDS_MAX: Final = 10 * 60
ATTEMPT_KEPT_SECONDS: Final = 60  # after its end, for whoever asks how it went
ATTEMPT_SWEEP_SECONDS: Final = 30
ATTEMPTS_OPEN_MAX: Final = 64
CALLBACK_HEAD_BYTES_MAX: Final = 16 * 1024
CALLBACK_SECONDS_MAX: Final = 10
CALLBACK_CONNECTIONS_MAX: Final = 16
