"""What JSON can hold and a message cannot: numbers beyond 64 bits."""

from __future__ import annotations

import msgspec

from redrive.models import Event, Job
from redrive.protocol import codec
from redrive.protocol.announcements import EventBatch
from redrive.protocol.queries import JobPage

HUGE = 10**30


def test_a_number_that_no_message_can_carry_is_told_as_text_beside_all_others() -> None:
    jobs = [
        Job(id=1, task="a", queue="q", result={"rows": [HUGE, 7]}),
        Job(id=2, task="b", queue="q"),
    ]
    answer = codec.decode_answer(codec.encode_answer("x", JobPage(jobs=jobs, after=None, as_of=3)))
    page = codec.decode_as(JobPage, answer.body)
    assert page.jobs[0].result == {"rows": [str(HUGE), 7]}
    assert page.jobs[1] == jobs[1]


def test_events_with_such_a_number_reach_whoever_listens() -> None:
    events = [Event(seq=n, at=0, type="step_retry", data={"saw": {"n": HUGE}}) for n in (1, 2)]
    told = codec.decode_as(EventBatch, codec.encode_told(EventBatch(epoch="e", events=events)))
    assert [event.data for event in told.events] == [{"saw": {"n": str(HUGE)}}] * 2


def test_what_a_message_can_carry_goes_as_it_is() -> None:
    batch = EventBatch(epoch="e", events=[Event(seq=1, at=0, type="x", data={"n": 2**64 - 1})])
    assert codec.encode_told(batch) == msgspec.msgpack.encode(batch)
