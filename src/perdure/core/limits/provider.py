"""Limits on providers and models: facts, requests, retries and credentials."""

from typing import Final

# Facts about models: shipped with the program, and refreshed over the network.
MODELS_TRUSTED_SECONDS: Final = 5 * 60  # a newer copy is not fetched again
MODELS_REFRESH_SECONDS: Final = 60 * 60
MODELS_FETCH_SECONDS_MAX: Final = 60
MODELS_FETCH_BYTES_MAX: Final = 32 * 1024 * 1024
MODELS_LOCK_SECONDS: Final = 0.05  # between two checks whether another process has finished
MODEL_INDEX_BYTES_MAX: Final = 4 * 1024 * 1024
MODEL_PROVIDERS_MAX: Final = 2_000
MODELS_PER_PROVIDER_MAX: Final = 5_000

# Default timeouts of a provider, unless its configuration sets them. Models may think long before
# the first token, and less long between two. Bytes that say nothing, such as comments, are silence.
PROVIDER_CONNECT_SECONDS_MAX: Final = 30.0
PROVIDER_GATHER_SECONDS: Final = 0.01  # an answer is read at most 100 times a second
PROVIDER_FIRST_BYTE_SECONDS_MAX: Final = 10 * 60.0
PROVIDER_IDLE_SECONDS_MAX: Final = 5 * 60.0
PROVIDER_TOTAL_SECONDS_MAX: Final = 4 * 60 * 60.0  # 128,000 tokens at nine a second

# One answer. A model writes about four characters for each of at most some 128,000 tokens; a server
# that repeats itself or is broken can send without end, and all of it would be kept and stored.
ANSWER_TEXT_CHARS_MAX: Final = 2 * 1024 * 1024  # of all its texts
ANSWER_REASONING_CHARS_MAX: Final = 2 * 1024 * 1024  # of all its reasoning
ANSWER_INPUT_CHARS_MAX: Final = 8 * 1024 * 1024  # of the inputs of all its calls
ANSWER_HOSTED_BYTES_MAX: Final = 16 * 1024 * 1024  # of hosted results and provider metadata
ANSWER_CONTINUATIONS_MAX: Final = 3  # of one answer that breaks off again and again
ANSWER_PAUSES_MAX: Final = 16  # in a row; each is one more request with ten hosted calls or so
ANSWER_PARTS_MAX: Final = 2_048  # texts, reasonings and calls; each is a few events of the log
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024  # of its body, after decompression
ANSWER_QUIET_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of a body between two events that say something; larger than a frame, smaller than a bomb."""
ANSWER_FRAME_BYTES_MAX: Final = 16 * 1024 * 1024  # one event, with an image that was made

# Retries of requests that failed before any of the answer came: how many, and after which delay.
# A provider that is overloaded gets more time than one that is broken.
RETRY_ATTEMPTS_MAX: Final = 3
RETRY_SECONDS_FIRST: Final = 0.5
RETRY_OVERLOAD_ATTEMPTS_MAX: Final = 6
RETRY_OVERLOAD_SECONDS_FIRST: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
RETRY_SPREAD: Final = 0.2  # jitter, as a share of the delay in both directions
RETRY_PATIENCE_SECONDS: Final = 10 * 60  # all waits of a request while a person is likely to watch
RETRY_PATIENCE_LONG_SECONDS: Final = 24 * 60 * 60  # the same with `experimental.patience: true`
RETRY_PATIENCE_SECONDS_MAX: Final = 31 * 24 * 60 * 60  # the most that can be configured
RETRY_LATER_SECONDS_MAX: Final = 5 * 60.0  # between attempts of a request that only time bounds
RETRY_LOOK_SECONDS: Final = 60.0  # a long wait looks at the clock this often: machines sleep

# The chain of models of an agent. A wait up to the first of these is cheaper than another model. A
# model that failed is not asked again for a time that doubles.
CHAIN_WAIT_SECONDS_MAX: Final = 30.0
CHAIN_REST_SECONDS_FIRST: Final = 60.0
CHAIN_REST_SECONDS_MAX: Final = 60 * 60.0
CHAIN_MODELS_MAX: Final = 16

# Configured limits of a provider, shared by all Sessions.
SLOT_LOOK_SECONDS: Final = 0.25  # between two looks whether another request has ended
SLOT_WAIT_SECONDS: Final = 5.0  # the longest sleep: a process that dies frees its slots early

# Stored credentials, and logins that a person finishes in a browser.
CREDENTIAL_CHARS_MAX: Final = 16 * 1024  # per key or token; some tokens are signed documents
CREDENTIAL_LABEL_CHARS_MAX: Final = 200
CREDENTIAL_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
LOGIN_INPUT_CHARS_MAX: Final = 1_024
LOGIN_SECONDS_MAX: Final = 10 * 365 * 24 * 60 * 60  # a longer lifetime counts as unknown
LOGIN_RENEWED_AHEAD_SECONDS: Final = 5 * 60
LOGIN_RETRY_SECONDS: Final = 30  # before a failed renewal is tried again without a request
LOGIN_LOOK_SECONDS: Final = 60 * 60  # between two checks whether a login must be renewed
LOGIN_ANSWER_BYTES_MAX: Final = 256 * 1024
LOGIN_ANSWER_SECONDS_MAX: Final = 30
GOOGLE_LOGIN_BYTES_MAX: Final = 64 * 1024  # the Google Cloud tools write a few hundred
LOGIN_LOCK_SECONDS: Final = 0.05  # between two checks whether another process has renewed it
ATTEMPT_SECONDS_MAX: Final = 10 * 60
ATTEMPT_KEPT_SECONDS: Final = 60  # after its end, so that clients can read the result
ATTEMPT_SWEEP_SECONDS: Final = 30
ATTEMPTS_OPEN_MAX: Final = 64
CALLBACK_HEAD_BYTES_MAX: Final = 16 * 1024
CALLBACK_SECONDS_MAX: Final = 10
CALLBACK_CONNECTIONS_MAX: Final = 16
