from __future__ import annotations

import msgspec
import pytest

from redrive.protocol.envelope import Call
from redrived.api import receipts
from redrived.api.receipts import Receipts
from support.clock import FakeClock


class Work:
    def __init__(self, answer: bytes = b"done") -> None:
        self.times = 0
        self.answer = answer

    async def __call__(self) -> bytes:
        self.times += 1
        return self.answer


def a_call(id: str) -> Call:
    return Call(id=id, body=msgspec.Raw(b"\x80"))


async def test_a_receipt_is_kept_for_ten_minutes() -> None:
    clock, work = FakeClock(), Work()
    kept = Receipts(clock)
    await kept.once("anna", a_call("a"), work)
    clock.move(receipts.KEPT - 1)
    await kept.once("anna", a_call("a"), work)
    assert work.times == 1
    clock.move(1)
    await kept.once("anna", a_call("a"), work)
    assert work.times == 2


async def test_a_receipt_belongs_to_who_asked() -> None:
    work = Work()
    kept = Receipts(FakeClock())
    await kept.once("anna", a_call("a"), work)
    await kept.once("ben", a_call("a"), work)
    assert work.times == 2
    assert await kept.answer_to("carl", "a") is None


@pytest.mark.parametrize(("limit", "most"), [("MOST", 10), ("MOST_BYTES", 10_000)])
async def test_the_oldest_receipts_go_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(receipts, limit, most)
    kept = Receipts(FakeClock())
    for number in range(100):
        await kept.once("anna", a_call(f"{number}"), Work(b"x" * 1000))
    assert await kept.answer_to("anna", "0") is None
    assert await kept.answer_to("anna", "99") is not None
    assert len(kept) <= 11


async def test_work_that_was_cut_short_leaves_no_receipt() -> None:
    kept = Receipts(FakeClock())

    async def fail() -> bytes:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await kept.once("anna", a_call("a"), fail)
    work = Work()
    await kept.once("anna", a_call("a"), work)
    assert work.times == 1
