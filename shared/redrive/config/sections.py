"""The shape of config.toml: one struct per table, every default written once, here.

The structs are frozen and hold values the program can use: durations are seconds, sizes
are bytes, paths are absolute. How people write them is the business of `values`, reading
the file and naming its mistakes that of `load`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct, field

# The `as` of a type tells the loader how people write it.
Seconds = Annotated[float, msgspec.Meta(extra={"as": "duration"})]  # "90s", "2m", "1h30m", 5
Size = Annotated[int, msgspec.Meta(extra={"as": "size"})]  # "512K", "1G", 4096
Rate = Annotated[str, msgspec.Meta(extra={"as": "rate"})]  # "100/min"
FilePath = Annotated[str, msgspec.Meta(extra={"as": "path"})]  # relative to the config file
Name = Annotated[str, msgspec.Meta(extra={"as": "name"})]  # letters, digits, `_ - . :`
Pattern = Annotated[
    str, msgspec.Meta(extra={"as": "pattern"})
]  # RE2, refused if it will not compile
Condition = Annotated[str, msgspec.Meta(extra={"as": "condition"})]  # Jinja2, one expression
Template = Annotated[str, msgspec.Meta(extra={"as": "template"})]  # Jinja2, text
Natural = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the config."""


class Daemon(Section, kw_only=True):
    name: Name | None = None  # default: the host's name
    state_dir: FilePath | None = None  # default: $STATE_DIRECTORY or ~/.local/state/redrive
    runtime_dir: FilePath | None = None  # default: $RUNTIME_DIRECTORY or $XDG_RUNTIME_DIR/redrive
    concurrency: Natural = 8
    shutdown_grace: Seconds = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "text", "json", "journal"] = "auto"


class Keep(Section, kw_only=True):
    """How long finished things stay; `None` keeps them until a person decides."""

    done: Seconds | None = 7 * 86400.0
    cancelled: Seconds | None = 30 * 86400.0
    dead: Seconds | None = None
    events: Seconds | None = 30 * 86400.0
    outputs: Seconds | None = 7 * 86400.0


class Store(Section, kw_only=True):
    url: str = "sqlite:///redrive.db"
    durability: Literal["full", "normal"] = "full"
    keep: Keep = field(default_factory=Keep)


class Bus(Section, kw_only=True):
    events: str | None = None  # an address; default: ipc sockets in runtime_dir
    query: str | None = None
    control: str | None = None
    curve: FilePath | None = None  # the folder of keys; needed for tcp
    viewers: str | None = None  # group that may read
    operators: str | None = None  # group that may change


class Http(Section, kw_only=True):
    listen: str
    token_file: FilePath | None = None
    hosts: list[str] = field(default_factory=list)  # names accepted in Host besides the address


class Console(Section, kw_only=True):
    environment: str | None = None
    colour: str = "blue"
    protected: bool = False
    keymap: FilePath | None = None
    theme: str | None = None


class Queue(Section, kw_only=True):
    priority: int = 0
    reserved: Annotated[int, msgspec.Meta(ge=0)] = 0
    concurrency: Natural | None = None
    rate: Rate | None = None
    operations: list[Name] = field(default_factory=list)


class Backoff(Section, kw_only=True):
    first: Seconds = 5.0
    factor: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    cap: Seconds = 600.0


class Retry(Section, kw_only=True):
    """A retry policy as written; `None` inherits from `retry.default`."""

    max_attempts: Natural | None = None
    delays: list[Seconds] | None = None
    backoff: Backoff | None = None
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    retry_when: Condition | None = None
    stop_when: Condition | None = None
    unknown: Literal["retry", "once", "dead"] | None = None
    retry_for: Seconds | None = None
    retry_after_cap: Seconds | None = None


class ManualRetry(Section, kw_only=True):
    """`[retry.manual]`: how often a person may requeue the same job."""

    cooldown: Seconds = 60.0
    max: Natural = 5


class ErrorRule(Section, kw_only=True):
    """One `[[errors]]` entry: what it matches, and what it makes of it."""

    exception: str | list[str] | None = None
    match: Pattern | None = None
    exit_code: int | list[int] | None = None
    signal: str | list[str] | None = None
    status: int | str | list[int | str] | None = None  # 503, "5xx"
    task: Name | list[Name] | None = None
    type: Name
    category: Literal["transient", "permanent", "unknown"]
    message: str | None = None
    guidance: str | None = None


class Heartbeat(Section, kw_only=True):
    source: Literal["job", "notify", "output", "process"] = field(name="from")
    every: Seconds = 30.0
    stalled_after: Seconds = 120.0


class Breaker(Section, kw_only=True):
    share: Share = 0.5
    window: Seconds = 300.0
    probe_every: Seconds = 30.0
    at_least: Natural = 10  # failures and successes seen before it may open


class Limits(Section, kw_only=True):
    memory: Size | None = None
    open_files: Natural | None = None
    cpu: Seconds | None = None
    processes: Natural | None = None
    file_size: Size | None = None
    nice: Annotated[int, msgspec.Meta(ge=-20, le=19)] | None = None
    output: Size = 64 * 1024 * 1024  # what one attempt may write to its output


class HttpCall(Section, kw_only=True):
    url: Template
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, Template] = field(default_factory=dict)
    params: dict[str, Template] = field(default_factory=dict)
    json: Any = None  # templates inside its strings
    body: Template | None = None
    expect: list[int] = field(default_factory=list)  # empty: any 2xx
    redirects: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    max_response: Size = 1024 * 1024
    allow_private_redirects: bool = False
    allow_link_local: bool = False
    connect_timeout: Seconds = 10.0


class Task(Section, kw_only=True):
    """What to run and how it may fail; exactly one of python, command, http."""

    python: str | None = None  # "package.module:function"
    command: str | list[Template] | None = None
    http: HttpCall | None = None
    pool: Name = "default"
    queue: Name = "default"
    retry: bool | Natural | Name | Retry | None = None
    heartbeat: Heartbeat | None = None
    timeout: Seconds | None = None
    grace: Seconds = 10.0
    on_lost: Literal["retry", "fail", "hold"] = "retry"
    max_lost: Natural = 3
    concurrency: Natural | None = None
    concurrency_key: Template | None = None
    rate: Rate | None = None
    breaker: Breaker | None = None
    cwd: FilePath | None = None  # default: the config's folder
    env: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    operation: Name | None = None  # given to jobs that name none
    priority: int = 0


class Pool(Section, kw_only=True):
    python: FilePath | None = None  # default: the daemon's own interpreter
    path: list[FilePath] = field(default_factory=list)
    processes: Natural = 4
    preload: list[str] = field(default_factory=list)
    recycle_after: Natural | None = None  # jobs
    recycle_memory: Size | None = None


class Shows(Section, kw_only=True):
    """The words a run shows instead of its state."""

    queued: str | None = None
    running: str | None = None
    done: str | None = None
    failed: str | None = None
    cancelled: str | None = None


class Step(Section, kw_only=True):
    name: Name
    task: Name
    args: dict[str, Any] | None = None  # templates inside; absent: the run's own
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


class Pipeline(Section, kw_only=True):
    steps: list[Step]
    shows: Shows | None = None
    mode: str | None = None


class Schedule(Section, kw_only=True):
    """Exactly one of task, pipeline; exactly one of cron, every, at."""

    task: Name | None = None
    pipeline: Name | None = None
    args: dict[str, Any] = field(default_factory=dict)
    cron: str | None = None
    every: Seconds | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    missed: Literal["skip", "once", "all"] = "once"
    max_missed: Natural = 100  # bounds `all`
    overlap: Literal["skip", "queue", "allow"] = "skip"
    queue: Name | None = None
    batch: Template | None = None


class Hook(Section, kw_only=True):
    on: list[str]
    command: list[str] | None = None
    http: HttpCall | None = None
    every: Seconds = 300.0
    timeout: Seconds = 30.0


class Config(Section, kw_only=True):
    """The whole file, checked. `path` is where it was read from."""

    daemon: Daemon = field(default_factory=Daemon)
    store: Store = field(default_factory=Store)
    bus: Bus = field(default_factory=Bus)
    http: Http | None = None
    console: Console = field(default_factory=Console)
    queues: dict[str, Queue] = field(default_factory=dict)
    retry: dict[str, Retry] = field(default_factory=dict)  # `manual` stands apart, below
    manual_retry: ManualRetry = field(default_factory=ManualRetry)
    errors: list[ErrorRule] = field(default_factory=list)
    tasks: dict[str, Task] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    folder: str = "."  # where the file lies; commands run there by default
    path: str | None = None
