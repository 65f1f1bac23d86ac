from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redrive.client import Addresses, AnswerLost, AsyncClient, DaemonSilent, sockets
from redrive.clock import SECOND
from redrive.errors import (
    DaemonUnreachable,
    Exit,
    NotAllowed,
    ProtocolMismatch,
    RedriveError,
    TryLater,
    UsageProblem,
)
from redrive.protocol.commands import Done, Drain, Enqueue, Enqueued, EnqueuedJob, JobOrder
from redrive.protocol.envelope import MAX_MESSAGE, Refusal
from redrive.protocol.queries import Doctor, DoctorReply, FateReply
from support.peer import Peer, opened, welcome


def canned(number: int) -> Enqueued:
    job = EnqueuedJob(id=number, state="queued", created=True)
    return Enqueued(count=1, created=1, first_id=number, last_id=number, jobs=[job])


async def test_a_job_is_enqueued_over_control_with_what_was_given(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Enqueue"] = canned(12)

    job = await client.enqueue("parse", {"path": "a.zip"}, queue="bulk", delay=60.0)

    assert job == EnqueuedJob(id=12, state="queued", created=True)
    assert peer.asked_for("Enqueue") == [
        Enqueue(task="parse", orders=[JobOrder(args={"path": "a.zip"}, queue="bulk", delay=60.0)])
    ]


async def test_a_time_is_given_as_a_datetime_or_an_instant(peer: Peer, client: AsyncClient) -> None:
    peer.replies["Enqueue"] = canned(12)
    await client.enqueue("parse", at=datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    await client.enqueue("parse", at=60 * SECOND)
    assert [asked.orders[0].at for asked in peer.asked_for("Enqueue")] == [60 * SECOND] * 2


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
async def test_a_timeout_that_is_none_is_refused(peer: Peer, timeout: float) -> None:
    with pytest.raises(UsageProblem, match="a timeout of"):
        AsyncClient(peer.addresses, timeout=timeout)


async def test_a_datetime_without_a_zone_is_refused(peer: Peer, client: AsyncClient) -> None:
    with pytest.raises(UsageProblem, match="has no time zone"):
        await client.enqueue("parse", at=datetime(1970, 1, 1))  # noqa: DTZ001
    assert peer.asked == []


async def test_the_daemon_is_greeted_once_before_the_first_question(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    await client.ask(Doctor())
    await client.ask(Doctor())
    assert [type(each).__name__ for each in peer.asked] == ["Hello", "Doctor", "Doctor"]


async def test_a_daemon_of_another_protocol_is_refused_with_both_versions(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Hello"] = welcome(version=99)
    with pytest.raises(ProtocolMismatch, match=r"redrive 9\.9\.9 and speaks protocol 99") as caught:
        await client.status()
    assert caught.value.exit_code == Exit.UNAVAILABLE
    assert [type(each).__name__ for each in peer.asked] == ["Hello"]


@pytest.mark.parametrize(
    ("code", "exit_code", "kind"),
    [
        ("try_later", Exit.TRY_LATER, TryLater),
        ("not_allowed", Exit.NOT_ALLOWED, NotAllowed),
        ("usage", Exit.USAGE, UsageProblem),
        ("a_code_of_tomorrow", Exit.CONFIG, RedriveError),
    ],
)
async def test_a_refusal_is_raised_as_the_error_it_names(
    peer: Peer, client: AsyncClient, code: str, exit_code: Exit, kind: type[RedriveError]
) -> None:
    peer.replies["Doctor"] = Refusal(
        code=code, message="no", hint="later", retry_after=7.5, exit_code=exit_code
    )
    with pytest.raises(RedriveError) as caught:
        await client.ask(Doctor())
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.message, error.hint) == (code, "no", "later")
    assert error.exit_code == exit_code
    if isinstance(error, TryLater):
        assert error.retry_after == 7.5


async def test_an_unknown_exit_code_becomes_that_of_the_type(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Doctor"] = Refusal(code="try_later", message="no", exit_code=3)
    with pytest.raises(TryLater) as caught:
        await client.ask(Doctor())
    assert caught.value.exit_code == Exit.TRY_LATER


async def test_without_a_daemon_the_error_names_the_socket_and_what_to_do(folder: Path) -> None:
    addresses = Addresses(
        query=f"ipc://{folder}/query",
        control=f"ipc://{folder}/control",
        events=f"ipc://{folder}/events",
        config="/etc/redrive/config.toml",
    )
    async with AsyncClient(addresses) as client:
        with pytest.raises(DaemonUnreachable, match=f"{folder}/query") as caught:
            await client.status()
    assert "redrived --config /etc/redrive/config.toml" in caught.value.hint
    assert "redrive up" in caught.value.hint


async def test_a_socket_that_a_killed_daemon_left_behind_is_seen_through_at_once(
    folder: Path,
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{folder}/query")
        left.listen()
    async with AsyncClient(Peer(folder).addresses, timeout=3600) as client:
        with pytest.raises(DaemonUnreachable, match="nobody listens"):
            await client.status()


async def test_an_address_where_nobody_listens_is_seen_through_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        addresses = Addresses(query=address, control=address, events=address)
        async with AsyncClient(addresses, timeout=3600) as client:
            with pytest.raises(DaemonUnreachable, match="nobody listens"):
                await client.status()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every socket")
async def test_a_socket_of_another_group_says_which_right_is_missing(
    peer: Peer, client: AsyncClient, folder: Path
) -> None:
    (folder / "control").chmod(0)
    with pytest.raises(NotAllowed, match="may not open") as caught:
        await client.enqueue("parse")
    assert caught.value.exit_code == Exit.NOT_ALLOWED


async def test_who_was_let_in_before_takes_a_closed_folder_for_a_daemon_that_starts(
    folder: Path,
) -> None:
    async with opened(folder) as peer:
        peer.replies["Doctor"] = DoctorReply(checks=[])
        client, other = AsyncClient(peer.addresses), AsyncClient(peer.addresses)
        await client.ask(Doctor())
    with closed(folder):
        with pytest.raises(DaemonUnreachable, match="may not open the socket"):
            await client.ask(Doctor())
        with pytest.raises(NotAllowed, match="may not open the socket"):
            await other.ask(Doctor())
    await client.close()


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """To ourselves; root may go everywhere, and is nobody meanwhile."""
    us = os.geteuid()
    folder.chmod(0)
    os.seteuid(us or 65534)
    try:
        yield
    finally:
        os.seteuid(us)
        folder.chmod(0o700)


async def test_a_silent_daemon_costs_a_question_no_more_than_its_deadline(
    peer: Peer, client: AsyncClient
) -> None:
    with pytest.raises(AnswerLost, match="gave no answer in time"):
        await client.ask(Drain(), timeout=0.05)


async def test_nobody_is_told_to_start_a_daemon_that_is_there_and_hangs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "HANDSHAKE", 100)
    addresses = Peer(folder).addresses
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(addresses.query.removeprefix("ipc://"))
        door.listen()  # as a daemon that was stopped: only the kernel takes the call
        async with AsyncClient(addresses, timeout=20) as client:
            with pytest.raises(DaemonSilent, match="listens and does not answer") as caught:
                await client.status()
    assert "start it" not in caught.value.hint


async def test_a_question_that_is_never_answered_is_the_silence_of_a_daemon_that_is_there(
    peer: Peer, client: AsyncClient
) -> None:
    with pytest.raises(DaemonSilent, match="gave no answer in time"):
        await client.ask(Doctor(), timeout=0.3)


async def test_an_answer_that_was_lost_leaves_an_id_whose_fate_can_be_asked(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Fate"] = FateReply(known=True)
    with pytest.raises(AnswerLost) as caught:
        await client.ask(Drain(), id="abc", timeout=0.05)
    assert caught.value.request == "abc"
    assert await client.fate("abc") == FateReply(known=True)
    assert peer.asked_for("Fate")[0].request == "abc"


async def test_a_daemon_that_goes_away_ends_the_questions_under_way(
    peer: Peer, client: AsyncClient
) -> None:
    def go(_: object) -> None:
        peer.close()

    peer.replies["Drain"] = go
    with pytest.raises(AnswerLost, match="went away"):
        await client.ask(Drain(), timeout=3600)


async def test_a_command_typed_while_the_daemon_is_away_is_never_delivered_later(
    folder: Path,
) -> None:
    async with opened(folder) as first:
        client = AsyncClient(first.addresses, timeout=5.0)
        first.replies["Drain"] = Done(text="")
        await client.ask(Drain())
    with pytest.raises(DaemonUnreachable):
        await client.ask(Drain(), timeout=0.3)

    async with opened(folder) as second:
        second.replies["Doctor"] = DoctorReply(checks=[])
        await client.ask(Doctor())
        second.replies["Resume"] = Done(text="")
        second.replies["Backup"] = Done(text="")
        await client.close()
        assert second.asked_for("Drain") == []


async def test_a_daemon_that_came_back_is_greeted_again(folder: Path) -> None:
    async with opened(folder) as first:
        client = AsyncClient(first.addresses, timeout=5.0)
        first.replies["Doctor"] = DoctorReply(checks=[])
        await client.ask(Doctor())
    with pytest.raises(DaemonUnreachable):
        await client.ask(Doctor())
    async with opened(folder) as second:
        second.replies["Hello"] = welcome(version=99)
        with pytest.raises(ProtocolMismatch):
            await client.ask(Doctor())
    await client.close()


async def test_a_request_too_large_for_the_daemon_is_not_sent(
    peer: Peer, client: AsyncClient
) -> None:
    with pytest.raises(UsageProblem, match="the most is"):
        await client.enqueue("parse", {"text": "x" * MAX_MESSAGE})
    assert peer.asked == []


@pytest.mark.parametrize("value", [10**30, object(), "\udcff"])
async def test_what_no_json_can_hold_is_refused_before_it_is_sent(
    peer: Peer, client: AsyncClient, value: object
) -> None:
    with pytest.raises(UsageProblem, match="cannot be sent"):
        await client.enqueue("parse", {"value": value})
    with pytest.raises(UsageProblem, match="cannot be sent"):
        await client.enqueue_many("parse", [JobOrder(args={"value": value})])
    assert peer.asked == []


async def test_answers_that_come_in_another_order_find_their_questions(
    peer: Peer, client: AsyncClient
) -> None:
    peer.replies["Enqueue"] = lambda request: canned(int(request.orders[0].args["n"]))
    jobs = await asyncio.gather(*(client.enqueue("parse", {"n": n}) for n in range(20)))
    assert [job.id for job in jobs] == list(range(20))
