"""Rules are tried on errors that were recorded, before a daemon goes by them."""

from __future__ import annotations

from pathlib import Path

from redrive.protocol.rehearsals import RulesReply, TestRules
from redrive.protocol.rows import RuleChange
from support.trial import Trial, trial

HANDLERS = """
import os

def refuse():
    import redrive
    raise redrive.Permanent("no such customer", type="no_customer")

def wait_for_it():
    import redrive
    raise redrive.Transient("not there yet")

def vanish():
    os._exit(3)

def crash():
    raise RuntimeError("it broke")

def say_nothing():
    raise TimeoutError

def say_no_word():
    raise RuntimeError
"""
TASKS = """
[pools.default]
path = ["."]
processes = 1
[tasks.refuse]
python = "handlers:refuse"
[tasks.wait_for_it]
python = "handlers:wait_for_it"
[tasks.vanish]
python = "handlers:vanish"
[tasks.crash]
python = "handlers:crash"
[tasks.say_nothing]
python = "handlers:say_nothing"
[tasks.say_no_word]
python = "handlers:say_no_word"
[tasks.exit]
command = "echo 'it broke' >&2; exit 65"
"""
OF_ONE_TASK = """
[[errors]]
task = "crash"
match = "broke"
type = "broken"
category = "permanent"
"""
# What was raised stands in place of an empty message, and is none.
OF_EMPTY_MESSAGES = """
[[errors]]
match = "^(TimeoutError|RuntimeError)$"
type = "named"
category = "permanent"
"""


def replayed(daemon: Trial) -> RulesReply:
    reply: RulesReply = daemon.ask.ask(TestRules(since=3600))
    return reply


def test_the_same_rules_judge_recorded_errors_as_they_did(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        tasks = ("refuse", "wait_for_it", "vanish", "crash", "say_nothing", "say_no_word", "exit")
        for task in tasks:
            daemon.until_ended(daemon.enqueue(task))
        with open(daemon.config, "a") as file:
            file.write(OF_EMPTY_MESSAGES)

        assert replayed(daemon) == RulesReply(examined=7, changed=[])


def test_a_rule_for_one_task_changes_the_errors_of_that_task_only(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        crashed, *_ = [daemon.enqueue(task) for task in ("crash", "exit")]
        daemon.until_all_ended()
        with open(daemon.config, "a") as file:
            file.write(OF_ONE_TASK)

        change = RuleChange(
            job=crashed,
            message="it broke",
            was="unknown (unknown)",
            now="broken (permanent)",
            rule='errors[0] match "broke", task "crash"',
        )
        assert replayed(daemon) == RulesReply(examined=2, changed=[change])
