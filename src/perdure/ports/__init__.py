"""Ports: every side effect of this program, as protocols.

Adapters live in `host/` and `store/database/`; `runtime/app/runtime.py` connects them. Other layers
import the ports from here and never the adapters.
"""

from perdure.net.transport import HttpTransport
from perdure.ports.approval import (
    PermissionAsk,
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
    PermissionGate,
    PermissionUnattendedError,
    QuestionAsk,
    QuestionBlockedError,
    Questioner,
    QuestionRejectedError,
    QuestionUnattendedError,
)
from perdure.ports.clock import Chance, Clock, IdSource
from perdure.ports.credential import CredentialStore, CredentialStoreError
from perdure.ports.database import (
    Database,
    DatabaseError,
    Processes,
    Row,
    SqlValue,
    Transaction,
    UniqueViolationError,
)
from perdure.ports.filesystem import FileStat, Filesystem
from perdure.ports.process import (
    DetachedCommand,
    DetachedProcesses,
    HeldProcess,
    OutputSink,
    PipedProcess,
    PipedProcesses,
    ProcessResult,
    ProcessRunner,
    SpoolingRunner,
)
from perdure.ports.terminal import Terminal, TerminalHost
from perdure.ports.web import WebFetchError, WebPage, WebPages, WebRequest

__all__ = [
    "Chance",
    "Clock",
    "CredentialStore",
    "CredentialStoreError",
    "Database",
    "DatabaseError",
    "DetachedCommand",
    "DetachedProcesses",
    "FileStat",
    "Filesystem",
    "HeldProcess",
    "HttpTransport",
    "IdSource",
    "OutputSink",
    "PermissionAsk",
    "PermissionBlockedError",
    "PermissionCorrectedError",
    "PermissionDeclinedError",
    "PermissionGate",
    "PermissionUnattendedError",
    "PipedProcess",
    "PipedProcesses",
    "ProcessResult",
    "ProcessRunner",
    "Processes",
    "QuestionAsk",
    "QuestionBlockedError",
    "QuestionRejectedError",
    "QuestionUnattendedError",
    "Questioner",
    "Row",
    "SpoolingRunner",
    "SqlValue",
    "Terminal",
    "TerminalHost",
    "Transaction",
    "UniqueViolationError",
    "WebFetchError",
    "WebPage",
    "WebPages",
    "WebRequest",
]
