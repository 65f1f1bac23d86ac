"""What the server promises to whoever asks: read safely, done once, answered in words."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from pathlib import Path

import msgspec
import pytest
import zmq

from redrive.errors import Exit, NotFound, TryLater
from redrive.protocol import VERSION, codec
from redrive.protocol.commands import Done, Drain, Trigger
from redrive.protocol.envelope import MAX_MESSAGE, Answer, Call, Refusal
from redrive.protocol.queries import Doctor, DoctorReply, Fate, FateReply, Hello, Welcome
from redrive.protocol.rows import Check
from redrived.api.lanes import AT_ONCE
from redrived.api.server import Asker
from redrived.bus.peers import user_name
from support.bus import Raw, Served, serving
from support.daemon import soon


def control(served: Served) -> Raw:
    return Raw(zmq.DEALER, served.bus.addresses["control"])


def query(served: Served) -> Raw:
    return Raw(zmq.DEALER, served.bus.addresses["query"])


def refusal(answer: Answer) -> Refusal:
    assert answer.refusal is not None
    return answer.refusal


def call(body: object, id: str = "a", timeout: float | None = None) -> bytes:
    return codec.encode(Call(id=id, body=msgspec.Raw(codec.encode(body)), timeout=timeout))


# ---- hello -------------------------------------------------------------------------------


async def test_the_role_in_the_welcome_is_that_of_the_socket(served: Served) -> None:
    hello = Hello(version=VERSION, client="test")
    with query(served) as looking, control(served) as changing:
        seen = codec.decode_as(Welcome, (await looking.ask(hello)).body)
        allowed = codec.decode_as(Welcome, (await changing.ask(hello)).body)
    assert (seen.role, allowed.role) == ("viewer", "operator")
    assert seen.who == user_name(os.getuid())


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
async def test_another_version_of_the_protocol_is_refused_by_name(
    served: Served, version: int
) -> None:
    with query(served) as raw:
        said = refusal(await raw.ask(Hello(version=version, client="old\x1b[31m")))
    assert (said.code, said.exit_code) == ("version", Exit.UNAVAILABLE)
    assert f"speaks version {VERSION}" in said.message
    assert f"speaks {version}" in said.message
    assert "\x1b" not in said.message


# ---- what is not in the table ------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["__class__", "shutdown.__globals__", "_private", "х" * 10_000, "drаin", "", "hello\x00"],
)
@pytest.mark.parametrize("socket", ["query", "control"])
async def test_a_name_that_is_in_no_table_is_an_unknown_command(
    served: Served, socket: str, name: str
) -> None:
    with Raw(zmq.DEALER, served.bus.addresses[socket]) as raw:
        said = refusal(await raw.exchange(call({"type": name, "node": None})))
    assert (said.code, said.exit_code) == ("unknown_command", Exit.USAGE)
    assert said.message.isascii()
    assert len(said.message) < 500


async def test_a_request_without_a_handler_is_an_unknown_command(folder: Path) -> None:
    async with serving(folder / "run") as served:
        with control(served) as raw:
            said = refusal(await raw.exchange(call({"type": "undo", "redrive": 1})))
    assert said.code == "unknown_command"


async def test_a_change_on_the_socket_for_looking_is_not_allowed(served: Served) -> None:
    with query(served) as raw:
        said = refusal(await raw.ask(Drain()))
    assert (said.code, said.exit_code) == ("not_allowed", Exit.NOT_ALLOWED)
    assert served.asked == []


async def test_a_question_on_the_socket_for_changes_is_sent_elsewhere(served: Served) -> None:
    with control(served) as raw:
        said = refusal(await raw.ask(Doctor()))
    assert (said.code, said.hint) == ("usage", "send it to `query`")


async def test_a_request_with_a_field_of_the_wrong_type_is_refused_with_its_place(
    served: Served,
) -> None:
    with control(served) as raw:
        said = refusal(await raw.exchange(call({"type": "trigger", "schedule": 7})))
    assert said.code == "usage"
    assert "$.schedule" in said.message
    assert said.hint == "docs/protocol.md has the fields of trigger and their types"


@pytest.mark.parametrize("id", ["", "../../etc/passwd", "/dev/fifo", "a\x00b", "x" * 10_000, "é"])
async def test_an_id_that_is_no_id_is_refused(served: Served, id: str) -> None:
    with control(served) as raw:
        said = refusal(await raw.exchange(call({"type": "drain"}, id=id)))
    assert said.code == "usage"
    assert served.asked == []


@pytest.mark.parametrize("timeout", [math.nan, math.inf, -1.0, 1e300])
async def test_a_timeout_that_no_timer_can_hold_is_refused(served: Served, timeout: float) -> None:
    with query(served) as raw:
        said = refusal(await raw.ask(Doctor(), timeout=timeout))
    assert said.code == "usage"


# ---- answers -----------------------------------------------------------------------------


async def test_an_error_becomes_a_refusal_with_everything_it_says(folder: Path) -> None:
    async def refuse(asker: Asker, request: Trigger) -> Done:
        error = TryLater("too early", hint="have a tea", retry_after=7.5)
        error.order = 3
        raise error

    async with serving(folder / "run", table={Trigger: refuse}) as served:
        with control(served) as raw:
            said = refusal(await raw.ask(Trigger(schedule="x")))
    assert said == Refusal(
        code="try_later",
        message="too early",
        hint="have a tea",
        retry_after=7.5,
        exit_code=Exit.TRY_LATER,
        order=3,
    )


async def test_a_refusal_that_quotes_much_is_cut_and_arrives(folder: Path) -> None:
    async def refuse(asker: Asker, request: Trigger) -> Done:
        raise NotFound(f"there is no schedule {request.schedule!r}")

    async with serving(folder / "run", table={Trigger: refuse}) as served:
        with control(served) as raw:
            said = refusal(await raw.ask(Trigger(schedule="\x00" * 1_500_000)))
    assert said.code == "not_found"
    assert said.message.startswith("there is no schedule")
    assert len(said.message) < 110_000


async def test_a_bug_is_answered_with_a_number_that_the_log_explains(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(asker: Asker, request: Doctor) -> DoctorReply:
        raise KeyError("secret")

    async with serving(folder / "run", table={Doctor: fail}) as served:
        with query(served) as raw:
            said = refusal(await raw.ask(Doctor()))
            assert (said.code, said.exit_code) == ("internal", Exit.INTERNAL)
            assert "secret" not in said.message + said.hint
            number = said.message.split("trouble ")[1].rstrip(")")
            (logged,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
            assert number in logged.getMessage()
            assert logged.exc_info is not None
            assert refusal(await raw.ask(Doctor(), id="b")).code == "internal"


async def test_an_answer_that_is_too_large_is_refused_instead_of_cutting_the_line(
    folder: Path,
) -> None:
    async def tell_all(asker: Asker, request: Doctor) -> DoctorReply:
        return DoctorReply(checks=[Check(name="x", ok=True, text="x" * MAX_MESSAGE)])

    async with serving(folder / "run", table={Doctor: tell_all}) as served:
        with query(served) as raw:
            said = refusal(await raw.ask(Doctor()))
    assert (said.code, said.hint) == ("usage", "ask for less at once")


async def test_every_handler_is_told_who_asks_as_the_kernel_knows_it(served: Served) -> None:
    with control(served) as raw:
        await raw.ask(Drain())
    ((asker, _),) = served.asked
    expected = Asker(who=user_name(os.getuid()), role="operator", uid=os.getuid(), pid=os.getpid())
    assert asker == expected


# ---- once --------------------------------------------------------------------------------


async def test_the_same_request_twice_does_the_thing_once(served: Served) -> None:
    with control(served) as raw:
        first = await raw.ask(Trigger(schedule="nightly"), id="a")
        second = await raw.ask(Trigger(schedule="nightly"), id="a")
        third = await raw.ask(Trigger(schedule="nightly"), id="b")
    assert first == second != third
    assert len(served.asked) == 2


async def test_a_request_that_comes_again_by_another_connection_is_known(served: Served) -> None:
    with control(served) as raw:
        first = await raw.ask(Trigger(schedule="nightly"), id="a")
    with control(served) as raw:
        second = await raw.ask(Trigger(schedule="nightly"), id="a")
    assert first == second
    assert len(served.asked) == 1


async def test_a_refusal_is_repeated_too(folder: Path) -> None:
    times = 0

    async def refuse(asker: Asker, request: Trigger) -> Done:
        nonlocal times
        times += 1
        raise NotFound(f"refusal number {times}")

    async with serving(folder / "run", table={Trigger: refuse}) as served:
        with control(served) as raw:
            answers = [await raw.ask(Trigger(schedule="x")) for _ in range(2)]
    assert [refusal(answer).message for answer in answers] == ["refusal number 1"] * 2


async def test_the_id_of_another_request_is_not_taken_for_it(served: Served) -> None:
    with control(served) as raw:
        await raw.ask(Trigger(schedule="nightly"), id="a")
        said = refusal(await raw.ask(Trigger(schedule="weekly"), id="a"))
    assert said.code == "usage"
    assert len(served.asked) == 1


async def test_a_request_that_comes_again_while_it_is_done_joins_it(folder: Path) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    times = 0

    async def work(asker: Asker, request: Trigger) -> Done:
        nonlocal times
        times += 1
        begun.set()
        await may_end.wait()
        return Done(text=f"time {times}")

    async with serving(folder / "run", table={Trigger: work}) as served:
        with control(served) as one, control(served) as other, query(served) as asking:
            await one.send(codec.encode_call("a", Trigger(schedule="x")))
            await begun.wait()
            await other.send(codec.encode_call("a", Trigger(schedule="x")))
            await asking.send(codec.encode_call("f", Fate(request="a")))
            await soon(lambda: len(served.server._under_way) == 3, "all three have come")  # pyright: ignore[reportPrivateUsage]
            may_end.set()
            assert await one.answer() == await other.answer()
            fate = codec.decode_as(FateReply, (await asking.answer()).body)
    assert times == 1
    assert fate == FateReply(known=True)


async def test_the_fate_of_a_request_can_be_asked_by_who_sent_it(folder: Path) -> None:
    async def refuse(asker: Asker, request: Trigger) -> Done:
        raise NotFound("no such schedule")

    async with serving(folder / "run", table={Trigger: refuse}) as served:
        with control(served) as raw, query(served) as asking:
            await raw.ask(Drain(), id="done")
            await raw.ask(Trigger(schedule="x"), id="refused")
            fates = [
                codec.decode_as(FateReply, (await asking.ask(Fate(request=id), id=id)).body)
                for id in ("done", "refused", "never")
            ]
    assert fates == [
        FateReply(known=True),
        FateReply(known=True, refusal="no such schedule"),
        FateReply(known=False),
    ]


# ---- deadlines and lanes -----------------------------------------------------------------


async def test_a_look_that_nobody_waits_for_is_given_up(folder: Path) -> None:
    given_up = asyncio.Event()

    async def never(asker: Asker, request: Doctor) -> DoctorReply:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    async with serving(folder / "run", table={Doctor: never}) as served:
        with query(served) as raw:
            await raw.send(codec.encode_call("a", Doctor(), 0.01))
            await given_up.wait()
            await soon(lambda: served.bus.dropped["late"] == 1, "it is counted")


async def test_a_change_once_begun_is_finished_though_nobody_waits(folder: Path) -> None:
    may_end = asyncio.Event()
    ended = 0

    async def work(asker: Asker, request: Trigger) -> Done:
        nonlocal ended
        await may_end.wait()
        ended += 1
        return Done(text="done after all")

    async with serving(folder / "run", table={Trigger: work}) as served:
        with control(served) as raw:
            await raw.send(codec.encode_call("a", Trigger(schedule="x"), 0.01))
            await raw.ask(Drain(), id="b")
            await asyncio.sleep(0.02)  # the deadline itself
            may_end.set()
            await soon(lambda: served.bus.dropped["late"] == 1, "the answer is dropped")
            again = await raw.ask(Trigger(schedule="x"), id="a")
    assert codec.decode_as(Done, again.body).text == "done after all"
    assert ended == 1


async def test_one_connection_that_asks_for_much_does_not_keep_others_waiting(
    folder: Path,
) -> None:
    may_end = asyncio.Event()
    begun = 0

    async def slow(asker: Asker, request: Doctor) -> DoctorReply:
        nonlocal begun
        begun += 1
        await may_end.wait()
        return DoctorReply(checks=[])

    async with serving(folder / "run", table={Doctor: slow}) as served:
        with query(served) as greedy, query(served) as modest:
            for number in range(100):
                await greedy.send(codec.encode_call(f"g{number}", Doctor()))
            await soon(lambda: begun == AT_ONCE, "the lane is full")
            await modest.send(codec.encode_call("m", Doctor()))
            await soon(lambda: begun == AT_ONCE + 1, "the other one is worked on")
            may_end.set()
            assert (await modest.answer()).id == "m"
            answered = {(await greedy.answer()).id for _ in range(100)}
    assert answered == {f"g{number}" for number in range(100)}


async def test_more_than_a_lane_holds_is_refused_until_answers_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrived.api.lanes.MOST", 3)
    may_end = asyncio.Event()

    async def slow(asker: Asker, request: Trigger) -> Done:
        await may_end.wait()
        return Done(text="done")

    async with serving(folder / "run", table={Trigger: slow}) as served:
        with control(served) as raw:
            for number in range(4):
                await raw.send(codec.encode_call(f"{number}", Trigger(schedule="x")))
            said = await raw.answer()
            assert (said.id, refusal(said).code) == ("3", "try_later")
            assert refusal(said).retry_after is not None
            may_end.set()
            assert {(await raw.answer()).id for _ in range(3)} == {"0", "1", "2"}
            assert (await raw.ask(Trigger(schedule="x"), id="3")).refusal is None


async def test_what_is_under_way_when_the_daemon_stops_is_still_answered(folder: Path) -> None:
    begun = asyncio.Event()

    async def work(asker: Asker, request: Trigger) -> Done:
        begun.set()
        await asyncio.sleep(0)
        return Done(text="just in time")

    async with serving(folder / "run", table={Trigger: work}) as served:
        raw = control(served)
        await raw.send(codec.encode_call("a", Trigger(schedule="x")))
        await begun.wait()
    with raw:
        answer = await raw.answer()
    assert codec.decode_as(Done, answer.body).text == "just in time"


async def test_what_was_answered_just_before_the_daemon_goes_is_still_read(folder: Path) -> None:
    """libzmq drops what a client has not read when its connection ends."""
    leaving: list[asyncio.Task[None]] = []

    async def drain(asker: Asker, request: Drain) -> Done:
        leaving.append(asyncio.create_task(served.stop()))
        return Done(text="node main drains")

    served = Served(folder / "run", table={Drain: drain})
    await served.start()
    with Raw(zmq.DEALER, served.bus.addresses["control"], immediate=1) as raw:
        await raw.send(codec.encode_call("a", Drain()))
        await soon(lambda: leaving, "the daemon is about to go")
        await asyncio.wait(leaving, timeout=0.05)  # the client is slow to read
        answer = await raw.answer()
    assert codec.decode_as(Done, answer.body).text == "node main drains"
    await leaving[0]
