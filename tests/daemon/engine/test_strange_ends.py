"""Whatever a task answers, measures or asks for, its attempt is settled, and nobody else's waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrived.engine.attempt import Ending
from redrived.processes import wire
from support.daemon import soon
from support.engine import running

DEEP = "[" * 30_000 + "]" * 30_000  # more than any parser's stack, less than the largest result
AS_TEXT = "kept as text: it is no JSON, too long, or nested more than 100 levels deep"


@asynccontextmanager
async def answering(kind: str, body: str) -> AsyncIterator[str]:
    """The address of a server that answers everybody so."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    ("kind", "body", "note"),
    [
        ("text/plain; charset=hex", "fine", None),
        ("application/json", DEEP, AS_TEXT),
        ("application/json", "[" * 101 + "]" * 101, AS_TEXT),
    ],
    ids=["a charset that is none", "json without a bottom", "json with a deep one"],
)
async def test_an_answer_that_cannot_be_read_as_told_is_a_result_as_text(
    tmp_path: Path, kind: str, body: str, note: str | None
) -> None:
    async with answering(kind, body) as url:
        config = f'[tasks.call]\nhttp = {{ url = "{url}" }}\n'
        async with running(tmp_path, config) as bench:
            [id] = await bench.enqueue("call")
            job = await bench.ended(id)
            assert job.state is JobState.DONE
            assert job.result["text"].startswith(body[:100])
            assert (await bench.event("action_completed", id)).data.get("result_note") == note


async def test_a_call_that_is_ended_before_its_first_step_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '[tasks.call]\nhttp = { url = "http://127.0.0.1:1/" }\n'
    async with running(tmp_path, config) as bench:
        engine = bench.engine
        begin = engine.http.start

        def begin_and_end(*what: object) -> None:
            begin(*what)  # type: ignore[arg-type]
            [attempt] = engine.attempts
            engine.ender.end(attempt, Ending.CANCEL, "anna")

        monkeypatch.setattr(engine.http, "start", begin_and_end)
        [id] = await bench.enqueue("call")
        assert (await bench.ended(id)).state is JobState.CANCELLED
        assert len(engine.attempts) == 0


@pytest.mark.parametrize("levels", [101, 900, 30_000])
async def test_a_last_line_that_is_too_deep_is_no_result(tmp_path: Path, levels: int) -> None:
    (tmp_path / "deep.json").write_text(f'{{"a": {"[" * levels + "]" * levels}}}')
    async with running(tmp_path, '[tasks.deep]\ncommand = "cat deep.json"\n') as bench:
        [id] = await bench.enqueue("deep")
        job = await bench.ended(id)
        assert (job.state, job.result) == (JobState.DONE, None)
        assert bench.engine.commands.is_idle
        told = (await bench.event("action_completed", id)).data["result_note"]
        assert told == "no result: its last line is nested more than 100 levels deep"


@pytest.mark.parametrize("when", ["datetime.timedelta.max", "1e13", "-1e15"])
async def test_a_snooze_until_no_calendar_goes_on_is_a_very_long_one(
    tmp_path: Path, when: str
) -> None:
    handler = f"import datetime, redrive\ndef rest():\n    raise redrive.Snooze({when})\n"
    (tmp_path / "handlers.py").write_text(handler)
    config = '[pools.default]\npath = ["."]\n[tasks.rest]\npython = "handlers:rest"\n'
    async with running(tmp_path, config) as bench:
        [id] = await bench.enqueue("rest")
        told = await bench.event("job_snoozed", id)
        assert "1970" < told.data["until"] < "2200"


@pytest.mark.parametrize("until", ["0", "-5", "datetime.datetime.now(datetime.timezone.utc)"])
async def test_a_snooze_without_a_wait_is_no_hot_loop(tmp_path: Path, until: str) -> None:
    handler = f"import datetime, redrive\ndef rest():\n    raise redrive.Snooze({until})\n"
    (tmp_path / "handlers.py").write_text(handler)
    config = '[pools.default]\npath = ["."]\n[tasks.rest]\npython = "handlers:rest"\n'
    async with running(tmp_path, config) as bench:
        [id] = await bench.enqueue("rest")
        told = await bench.event("job_snoozed", id)
        assert told.data["delay"] == 1.0


LIAR = """
import sys

def lie():
    runner = sys.modules["_redrive_worker.runner"]
    honest = runner.report

    def report(row, *rest):
        runner.report = honest
        failure = f'{{"names":[],"message":"","until":{10**30}}}'
        return f'[{row[1]},{row[2]},{10**30},1,"snoozed",null,false,null,null,{failure}]'

    runner.report = report

def well():
    return 1
"""


async def test_a_report_that_makes_no_sense_fails_its_job_alone(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(LIAR)
    config = '[pools.default]\npath = ["."]\nprocesses = 1\n'
    config += "".join(f'[tasks.{n}]\npython = "handlers:{n}"\n' for n in ("lie", "well"))
    async with running(tmp_path, config) as bench:
        [liar] = await bench.enqueue("lie")
        [good] = await bench.enqueue("well")
        job = await bench.ended(liar)
        assert job.error is not None
        assert (job.state, job.error.error_type) == (JobState.DEAD, "invalid_report")
        assert (await bench.ended(good)).state is JobState.DONE


async def test_an_error_type_is_a_word_that_every_database_can_keep(tmp_path: Path) -> None:
    handler = "import redrive\ndef no():\n    raise redrive.Permanent('x', type='no\\0such\\nfile' * 99)\n"
    (tmp_path / "handlers.py").write_text(handler)
    config = '[pools.default]\npath = ["."]\n[tasks.no]\npython = "handlers:no"\n'
    async with running(tmp_path, config) as bench:
        [id] = await bench.enqueue("no")
        error = await bench.failed(id)
        assert error.error_type.startswith("no such fileno")
        assert len(error.error_type) == 200


async def test_what_a_worker_says_of_an_earlier_lease_is_not_of_the_present_one(
    tmp_path: Path,
) -> None:
    code = "import os, time\ndef wait():\n    while not os.path.exists('go'): time.sleep(0.01)\n"
    (tmp_path / "handlers.py").write_text(code)
    config = (
        '[pools.default]\npath = ["."]\nprocesses = 1\n[tasks.wait]\npython = "handlers:wait"\n'
    )
    async with running(tmp_path, config) as bench:
        engine = bench.engine
        [id] = await bench.enqueue("wait")
        await soon(lambda: engine.attempts.get(id), "it runs")
        [worker] = engine.python.pools["default"].workers
        attempt = engine.attempts.get(id)
        assert attempt is not None
        stale = attempt.job.lease - 1

        engine.python.reported(worker, [wire.Report(id, stale, 0, 1, "failed")])
        engine.python.gave_back(worker, [(id, stale)])
        assert engine.attempts.get(id) is attempt
        (tmp_path / "go").touch()

        assert (await bench.ended(id)).state is JobState.DONE
        told = await bench.told(id)
        assert told == ["step_started", "action_started", "action_completed"]
