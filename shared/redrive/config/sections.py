"""The shape of config.toml: one struct per table, every default written once, here.

The structs are frozen and hold values the program can use: durations are seconds, sizes
are bytes, paths are absolute. How people write them is the business of `values`, reading
the file and naming its mistakes that of `load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct, field

from redrive.config.environment import redact

# The `as` of a type tells the reader how people write it.
Seconds = Annotated[float, msgspec.Meta(extra={"as": "duration"})]  # "90s", "2m", "1h30m", 5
Span = Annotated[float, msgspec.Meta(gt=0, extra={"as": "duration"})]  # the same, never zero
Lasting = Annotated[float | None, msgspec.Meta(extra={"as": "lasting"})]  # or "forever", false
Size = Annotated[int, msgspec.Meta(extra={"as": "size"})]  # "512K", "1G", 4096
Rate = Annotated[str, msgspec.Meta(extra={"as": "rate"})]  # "100/min"
FilePath = Annotated[str, msgspec.Meta(extra={"as": "path"})]  # relative to the config file
Name = Annotated[str, msgspec.Meta(extra={"as": "name"})]  # letters, digits, `_ - . :`
Variable = Annotated[str, msgspec.Meta(extra={"as": "variable"})]  # of the environment
Pattern = Annotated[str, msgspec.Meta(extra={"as": "pattern"})]  # RE2
Condition = Annotated[str, msgspec.Meta(extra={"as": "condition"})]  # Jinja2, one expression
Template = Annotated[str, msgspec.Meta(extra={"as": "template"})]  # Jinja2, text
Templates = Annotated[Any, msgspec.Meta(extra={"as": "templates"})]  # JSON, its texts Jinja2
Natural = Annotated[int, msgspec.Meta(ge=1)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]
HttpStatus = Annotated[int, msgspec.Meta(ge=100, le=599)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the config."""


class Daemon(Section, frozen=True, kw_only=True):
    name: Name | None = None  # default: the host's name
    state_dir: FilePath | None = None  # default: $STATE_DIRECTORY or ~/.local/state/redrive
    runtime_dir: FilePath | None = None  # default: $RUNTIME_DIRECTORY or $XDG_RUNTIME_DIR/redrive
    concurrency: Natural = 8
    shutdown_grace: Seconds = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "text", "json", "journal"] = "auto"


class Keep(Section, frozen=True, kw_only=True):
    """How long finished things stay; `None` keeps them until a person decides."""

    done: Lasting = 7 * 86400.0
    cancelled: Lasting = 30 * 86400.0
    dead: Lasting = None
    events: Lasting = 30 * 86400.0
    outputs: Lasting = 7 * 86400.0


class Store(Section, frozen=True, kw_only=True):
    url: str = "sqlite:///redrive.db"
    durability: Literal["full", "normal"] = "full"
    keep: Keep = field(default_factory=Keep)


class Bus(Section, frozen=True, kw_only=True):
    events: str | None = None  # an address; default: ipc sockets in runtime_dir
    query: str | None = None
    control: str | None = None
    curve: FilePath | None = None  # the folder of keys; needed for tcp
    viewers: str | None = None  # group that may read
    operators: str | None = None  # group that may change


class Http(Section, frozen=True, kw_only=True):
    listen: str
    token_file: FilePath | None = None
    hosts: list[str] = []  # names accepted in Host besides the address


class Console(Section, frozen=True, kw_only=True):
    environment: str | None = None
    colour: str = "blue"
    protected: bool = False
    keymap: FilePath | None = None
    theme: Literal["dark", "light", "high-contrast", "colour-blind", "mono"] = "dark"


class Queue(Section, frozen=True, kw_only=True):
    priority: int = 0
    reserved: Annotated[int, msgspec.Meta(ge=0)] = 0
    concurrency: Natural | None = None
    rate: Rate | None = None
    operations: list[Name] = []


def rank(queues: Mapping[str, Queue], queue: str, operation: str | None) -> int:
    """The place of an operation in its queue; those not named come last."""
    operations = queues[queue].operations if queue in queues else []
    return operations.index(operation) if operation in operations else len(operations)


class Backoff(Section, frozen=True, kw_only=True):
    first: Seconds = 5.0
    factor: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    cap: Seconds = 600.0


class Retry(Section, frozen=True, kw_only=True):
    """A retry policy as written; `None` inherits from `retry.default`."""

    max_attempts: Natural | None = None
    delays: list[Seconds] | None = None
    backoff: Backoff | None = None
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    retry_when: Condition | None = None
    stop_when: Condition | None = None
    unknown: Literal["retry", "once", "dead"] | None = None
    retry_for: Span | None = None
    retry_after_cap: Seconds | None = None


class ManualRetry(Section, frozen=True, kw_only=True):
    """`[retry.manual]`: how often a person may requeue the same job."""

    cooldown: Seconds = 60.0
    max: Natural = 5


class ErrorRule(Section, frozen=True, kw_only=True):
    """One `[[errors]]` entry: what it matches, and what it makes of it."""

    exception: str | list[str] | None = None
    match: Pattern | None = None
    exit_code: ExitCode | list[ExitCode] | None = None
    signal: str | list[str] | None = None
    status: HttpStatus | str | list[HttpStatus | str] | None = None  # 503, "5xx"
    task: Name | list[Name] | None = None
    type: Name
    category: Literal["transient", "permanent", "unknown"]
    message: str | None = None
    guidance: str | None = None


class Heartbeat(Section, frozen=True, kw_only=True):
    source: Literal["job", "notify", "output", "process"] | None = field(default=None, name="from")
    every: Span | None = None
    stalled_after: Span = 120.0

    @property
    def dropped_within(self) -> float:
        """Seconds after a beat in which others are not sent."""
        return min(30.0, self.stalled_after / 4) if self.every is None else self.every


class Breaker(Section, frozen=True, kw_only=True):
    share: Share = 0.5
    window: Span = 300.0
    probe_every: Span = 30.0
    at_least: Natural = 10  # failures and successes seen before it may open


class Limits(Section, frozen=True, kw_only=True):
    memory: Size | None = None
    open_files: Natural | None = None
    cpu: Span | None = None
    processes: Natural | None = None
    file_size: Size | None = None
    nice: Annotated[int, msgspec.Meta(ge=-20, le=19)] | None = None
    output: Size = 64 * 1024 * 1024  # what one attempt may write to its output


class HttpCall(Section, frozen=True, kw_only=True):
    url: Template
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, Template] = {}
    params: dict[str, Template] = {}
    json: Templates = None
    body: Template | None = None
    expect: list[HttpStatus] = []  # empty: any 2xx
    redirects: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    max_response: Size = 1024 * 1024
    allow_private_redirects: bool = False
    allow_link_local: bool = False
    connect_timeout: Span = 10.0


class Task(Section, frozen=True, kw_only=True):
    """What to run and how it may fail; exactly one of python, command, http."""

    python: str | None = None  # "package.module:function"
    command: str | list[Template] | None = None
    http: HttpCall | None = None
    pool: Name = "default"
    queue: Name = "default"
    retry: bool | Natural | Name | Retry | None = None
    heartbeat: Heartbeat | None = None
    timeout: Span | None = None
    grace: Seconds = 10.0
    on_lost: Literal["retry", "fail", "hold"] = "retry"
    max_lost: Natural = 3
    concurrency: Natural | None = None
    concurrency_key: Template | None = None
    rate: Rate | None = None
    breaker: Breaker | None = None
    cwd: FilePath | None = None  # default: the config's folder
    env: dict[Variable, str] = {}
    limits: Limits = field(default_factory=Limits)
    operation: Name | None = None  # given to jobs that name none
    priority: int = 0


class Pool(Section, frozen=True, kw_only=True):
    python: FilePath | None = None  # default: the daemon's own interpreter
    path: list[FilePath] = []
    processes: Natural = 4
    preload: list[str] = []
    recycle_after: Natural | None = None  # jobs
    recycle_memory: Size | None = None


class Shows(Section, frozen=True, kw_only=True):
    """The words a run shows instead of its state."""

    queued: str | None = None
    running: str | None = None
    done: str | None = None
    failed: str | None = None
    cancelled: str | None = None


class Step(Section, frozen=True, kw_only=True):
    name: Name
    task: Name
    args: dict[str, Templates] | None = None  # absent: the run's own
    needs: list[Name] | None = None  # absent: the step before
    when: Condition | None = None
    delay: Seconds = 0.0
    gate: Literal["batch"] | None = None
    retry_together: bool = False
    clear: Name | None = None  # a task run before the step is run again
    retry: bool | Natural | Name | Retry | None = None
    operation: Name | None = None
    queue: Name | None = None
    shows: Shows | None = None


class Pipeline(Section, frozen=True, kw_only=True):
    steps: list[Step]
    shows: Shows | None = None
    mode: str | None = None


class Schedule(Section, frozen=True, kw_only=True):
    """Exactly one of task, pipeline; exactly one of cron, every, at."""

    task: Name | None = None
    pipeline: Name | None = None
    args: dict[str, Any] = {}
    cron: str | None = None
    every: Span | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    missed: Literal["skip", "once", "all"] = "once"
    max_missed: Natural = 100  # bounds `all`
    overlap: Literal["skip", "queue", "allow"] = "skip"
    queue: Name | None = None
    batch: Template | None = None


class Hook(Section, frozen=True, kw_only=True):
    on: list[str]
    command: list[str] | None = None
    http: HttpCall | None = None
    every: Seconds = 300.0
    timeout: Span = 30.0


class ClientTables(Section, frozen=True, kw_only=True):
    """What the clients read, so that a mistake elsewhere never keeps them from the daemon."""

    daemon: Daemon = field(default_factory=Daemon)
    bus: Bus = field(default_factory=Bus)
    console: Console = field(default_factory=Console)


class Tables(ClientTables, frozen=True, kw_only=True):
    """The tables of the file."""

    store: Store = field(default_factory=Store)
    http: Http | None = None
    queues: dict[Name, Queue] = field(default_factory=lambda: {"default": Queue()})
    retry: dict[Name, Retry] = {}  # `manual` stands apart, in Config
    errors: list[ErrorRule] = []
    tasks: dict[Name, Task] = {}
    pools: dict[Name, Pool] = field(default_factory=lambda: {"default": Pool()})
    pipelines: dict[Name, Pipeline] = {}
    schedules: dict[Name, Schedule] = {}
    hooks: list[Hook] = []


class Config(Tables, frozen=True, kw_only=True):
    """The whole file, checked. `path` is where it was read from."""

    manual_retry: ManualRetry = field(default_factory=ManualRetry)
    folder: str = "."  # where the file lies; commands run there by default
    path: str | None = None
    secrets: frozenset[str] = frozenset()  # what came from the environment, and passwords

    def redact(self, text: str) -> str:
        """`text` as it may be shown and stored."""
        return redact(text, self.secrets)
