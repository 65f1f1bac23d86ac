"""What no key can say by itself: keys that must fit each other, and names that refer.

The list of all checks is at the top. They see what the reader could make of the file, so a
required value that was missing or wrong is None here, whatever its type says.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from redrive.config.flow_checks import check_pipelines, check_schedules
from redrive.config.lines import Key
from redrive.config.problems import Problems, instead
from redrive.config.sections import Bus, ClientTables, Console, Http, Store, Tables
from redrive.config.task_checks import check_errors, check_hooks, check_policies, check_tasks
from redrive.config.values import quoted

COLOURS = (
    "blue", "cyan", "gray", "green", "grey", "magenta", "orange", "purple", "red", "white", "yellow",
)  # fmt: skip
HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")

_ADDRESS = re.compile(r"ipc://.+|tcp://(?:\*|\[[^\]]+\]|[^:\[\]]+):[0-9]{1,5}")
_LISTEN = re.compile(r"(\[[^\]]+\]|[^:\[\]]+):([0-9]{1,5})")
_DATABASE = re.compile(r"sqlite:///(?!:memory:).+|postgresql\+psycopg://.+")


def check_all(tables: Tables, problems: Problems) -> None:
    check_client(tables, problems)
    check_store(tables.store, problems)
    if tables.http:
        check_http(tables.http, problems)
    check_queues(tables, problems)
    check_policies(tables, problems)
    check_errors(tables, problems)
    check_tasks(tables, problems)
    check_pipelines(tables, problems)
    check_schedules(tables, problems)
    check_hooks(tables, problems)


def check_client(tables: ClientTables, problems: Problems) -> None:
    check_bus(tables.bus, problems)
    check_console(tables.console, problems)


def check_bus(bus: Bus, problems: Problems) -> None:
    for name in ("events", "query", "control"):
        address: str | None = getattr(bus, name)
        key: Key = ("bus", name)
        if address is None:
            continue
        if not _ADDRESS.fullmatch(address):
            text = f"got {quoted(address)}, expected ipc://PATH or tcp://HOST:PORT"
            problems.add(key, text)
        elif address.startswith("tcp:") and bus.curve is None:
            problems.add(key, 'tcp is open to the network, expected `curve = "keys/"` beside it')


def check_console(console: Console, problems: Problems) -> None:
    if console.colour not in COLOURS and not HEX_COLOUR.fullmatch(console.colour):
        text = f"got {quoted(console.colour)}, {instead(console.colour, [*COLOURS, '#rrggbb'])}"
        problems.add(("console", "colour"), text)


def check_store(store: Store, problems: Problems) -> None:
    # The URL itself may hold a password, so the text does not repeat it.
    if not _DATABASE.fullmatch(store.url):
        problems.add(
            ("store", "url"),
            "no database we know, expected sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE",
        )


def check_http(http: Http, problems: Problems) -> None:
    key: Key = ("http", "listen")
    if problems.inside(("http",)):
        return
    found = _LISTEN.fullmatch(http.listen)
    if not found or int(found[2]) > 65535:
        problems.add(key, f"got {quoted(http.listen)}, expected HOST:PORT such as 127.0.0.1:8383")
    elif not _is_loopback(found[1].strip("[]")) and http.token_file is None:
        problems.add(
            key, f"{quoted(http.listen)} can be reached by others, expected `token_file` beside it"
        )


def check_queues(tables: Tables, problems: Problems) -> None:
    reserved = {name: queue.reserved for name, queue in tables.queues.items() if queue.reserved}
    if reserved and sum(reserved.values()) >= tables.daemon.concurrency:
        text = (
            f"{sum(reserved.values())} slots are reserved in all, "
            f"expected fewer than daemon.concurrency, which is {tables.daemon.concurrency}"
        )
        problems.doubt(("queues", [*reserved][-1], "reserved"), text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
