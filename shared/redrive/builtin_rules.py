"""What is known about errors before anybody configures anything: tables, no logic.

`KINDS` says what each type of error means to people; the other tables say which evidence
points to which type. What texts point to is in `builtin_patterns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from redrive.models import Category

SOON = "Will retry automatically."
UPLOAD = "Please re-upload the document."
REPAIR = "Fix the cause, then requeue the job."


class Kind(Struct, frozen=True):
    """One type of error, in words for people."""

    category: Category
    user_message: str
    guidance: str = ""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "timeout": Kind(
            "transient",
            "Processing timed out",
            "Will retry automatically. Large documents may take longer.",
        ),
        "rate_limit": Kind("transient", "Service temporarily busy", "Will retry in a few seconds."),
        "service_unavailable": Kind("transient", "Processing service unavailable", SOON),
        "connection_error": Kind("transient", "Network connection error", SOON),
        "database_lock": Kind("transient", "Database temporarily locked", SOON),
        "transient_error": Kind("transient", "Temporary problem", SOON),
        "server_error": Kind("transient", "The service failed", SOON),
        "resource_exhausted": Kind(
            "transient",
            "The machine ran out of a resource",
            "Will retry automatically. Free memory, disk space or file handles.",
        ),
        "out_of_memory": Kind(
            "transient",
            "Ran out of memory",
            "Will retry automatically. Raise the task's memory limit if it happens again.",
        ),
        "killed": Kind("transient", "Ended from outside", SOON),
        "lost": Kind("transient", "The worker died", SOON),
        "stalled": Kind("transient", "Processing stopped making progress", SOON),
        "invalid_file": Kind("permanent", "File appears to be invalid or corrupted", UPLOAD),
        "unsupported_format": Kind(
            "permanent", "File format not supported", "Supported formats: PDF, XLSX, DOCX, TXT"
        ),
        "auth_error": Kind(
            "permanent", "Access denied", "Contact administrator if issue persists."
        ),
        "not_found": Kind("permanent", "Document file not found", UPLOAD),
        "validation_error": Kind(
            "permanent", "The data is not valid", "Correct the data, then requeue the job."
        ),
        "request_refused": Kind("permanent", "The service refused the request", REPAIR),
        "usage_error": Kind("permanent", "The command was called wrongly", REPAIR),
        "config_error": Kind("permanent", "Something is configured wrongly", REPAIR),
        "program_error": Kind("permanent", "The program has a fault", REPAIR),
        "program_missing": Kind(
            "permanent",
            "The program was not found",
            "Install it, or mend the task's `command` and `cwd`, then requeue the job.",
        ),
        "program_unusable": Kind(
            "permanent",
            "The program could not be started",
            "See that it may be executed, or mend the task's `command` and `cwd`, then requeue"
            " the job.",
        ),
        "limit_exceeded": Kind(
            "permanent", "A limit was exceeded", "Raise the task's limit, then requeue the job."
        ),
        "permanent_error": Kind("permanent", "The task cannot succeed as it is", REPAIR),
        "crash": Kind("unknown", "The program crashed"),
        "unknown": Kind("unknown", "An unexpected error occurred"),
    }
)

# The status, or the first digit of it.
STATUSES: Mapping[int, str] = MappingProxyType(
    {
        401: "auth_error",
        403: "auth_error",
        404: "not_found",
        407: "auth_error",
        408: "timeout",
        410: "not_found",
        415: "unsupported_format",
        400: "validation_error",
        422: "validation_error",
        425: "transient_error",
        429: "rate_limit",
        502: "service_unavailable",
        503: "service_unavailable",
        504: "timeout",
        4: "request_refused",
        5: "server_error",
    }
)

# sysexits.h, and what a shell says of a program that never ran; 1 and the others say nothing.
EXITS: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        64: ("EX_USAGE", "usage_error"),
        65: ("EX_DATAERR", "validation_error"),
        66: ("EX_NOINPUT", "not_found"),
        75: ("EX_TEMPFAIL", "transient_error"),
        77: ("EX_NOPERM", "auth_error"),
        78: ("EX_CONFIG", "config_error"),
        126: ("not executable", "program_unusable"),
        127: ("no such program", "program_missing"),
    }
)

# Any other signal came from outside: somebody's kill, a reboot, a lost terminal.
SIGNALS: Mapping[str, str] = MappingProxyType(
    {
        "SIGABRT": "crash",
        "SIGBUS": "crash",
        "SIGFPE": "crash",
        "SIGILL": "crash",
        "SIGSEGV": "crash",
        "SIGSYS": "crash",
        "SIGTRAP": "crash",
        "SIGXCPU": "limit_exceeded",
        "SIGXFSZ": "limit_exceeded",
    }
)


# Found by the name with its module, else by the bare name, from the raised class up through
# its base classes.
EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "TimeoutError": "timeout",
        "Timeout": "timeout",
        "TimeoutException": "timeout",
        "ConnectTimeout": "timeout",
        "ReadTimeout": "timeout",
        "ServerSelectionTimeoutError": "timeout",
        "ConnectionError": "connection_error",
        "ClientConnectionError": "connection_error",
        "NetworkError": "connection_error",
        "TransportError": "connection_error",
        "AutoReconnect": "connection_error",
        "IncompleteRead": "connection_error",
        "RemoteProtocolError": "connection_error",
        "SMTPServerDisconnected": "connection_error",
        "socket.gaierror": "connection_error",
        "urllib.error.URLError": "connection_error",
        "psycopg.OperationalError": "connection_error",
        "psycopg2.OperationalError": "connection_error",
        "BusyLoadingError": "service_unavailable",
        "BlockingIOError": "transient_error",
        "InterruptedError": "transient_error",
        "MemoryError": "out_of_memory",
        "FileNotFoundError": "not_found",
        "PermissionError": "auth_error",
        "ssl.SSLCertVerificationError": "config_error",
        "ssl.SSLError": "connection_error",
        "zipfile.BadZipFile": "invalid_file",
        "tarfile.ReadError": "invalid_file",
        "gzip.BadGzipFile": "invalid_file",
        "UnicodeDecodeError": "invalid_file",
        "ValidationError": "validation_error",
        "IntegrityError": "validation_error",
        "ValueError": "validation_error",
        "ArithmeticError": "program_error",
        "AssertionError": "program_error",
        "AttributeError": "program_error",
        "ImportError": "program_error",
        "IsADirectoryError": "usage_error",
        "NameError": "program_error",
        "NotADirectoryError": "usage_error",
        "NotImplementedError": "program_error",
        "RecursionError": "program_error",
        "SyntaxError": "program_error",
        "TypeError": "program_error",
    }
)
