from __future__ import annotations

from redrive.config import Config, changes
from redrive.config.sections import (
    Bus,
    Daemon,
    Hook,
    Http,
    Limits,
    ManualRetry,
    Queue,
    Store,
    Task,
)

OLD = Config(
    queues={"default": Queue(), "bulk": Queue(priority=1)},
    tasks={"a": Task(command="x"), "b": Task(command="y")},
)


def test_the_same_config_changes_nothing() -> None:
    assert not changes(OLD, OLD)
    assert not changes(Config(folder="/a", path="/a/c"), Config(folder="/b", path="/b/c"))


def test_changes_are_named_as_in_the_file() -> None:
    new = Config(
        queues={"default": Queue(), "bulk": Queue(priority=2)},
        tasks={
            "a": Task(command="x", timeout=5, limits=Limits(nice=3, output=1)),
            "c": Task(command="z"),
        },
        manual_retry=ManualRetry(max=9),
        hooks=[Hook(on=["dead"], command=["x"])],
    )
    plan = changes(OLD, new)
    assert plan.added == ("tasks.a.timeout", "tasks.a.limits.nice", "tasks.c")
    assert plan.changed == (
        "queues.bulk.priority",
        "retry.manual.max",
        "tasks.a.limits.output",
        "hooks",
    )
    assert plan.removed == ("tasks.b",)
    assert plan.removed_tasks == ("b",)
    assert plan.needs_restart == ()


def test_what_a_reload_cannot_change_is_named() -> None:
    new = Config(
        daemon=Daemon(name="n", state_dir="/s", runtime_dir="/r", concurrency=2),
        store=Store(url="sqlite:///x.db", durability="normal"),
        bus=Bus(viewers="v"),
        http=Http(listen="127.0.0.1:1"),
    )
    assert set(changes(Config(), new).needs_restart) == {
        "daemon.name",
        "daemon.state_dir",
        "daemon.runtime_dir",
        "store.url",
        "store.durability",
        "bus.viewers",
        "http",
    }
    token = Config(http=Http(listen="127.0.0.1:1", token_file="/t"))
    plain = Config(http=Http(listen="127.0.0.1:1"))
    assert changes(plain, token).needs_restart == ()
    assert changes(token, Config()).needs_restart == ("http",)
