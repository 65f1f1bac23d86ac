"""From a key to its fate: what is refused, asked back, sent, undone, left unknown."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from redrive.client.refusals import AnswerLost
from redrive.errors import TryLater
from redrive.lifecycle import DEAD, LEASED, QUEUED, RETRY
from redrive.protocol.commands import Act, Outcome, PauseIt, Refused, ResumeIt
from redrive_tui.acting import UNDO_SECONDS, Acting, Intent, Question
from redrive_tui.command_log import CommandLog
from redrive_tui.mirror import Mirror
from redrive_tui.verbs import Rung
from redrive_tui.wishes import Ids, Matching, Named, Options
from support import incident
from support.clock import FakeClock
from support.recorded import Recorded


class Operator:
    """Somebody at a console: answers questions, reads what is said."""

    def __init__(self, *, read_only: bool = False, **welcome: Any) -> None:
        self.clock = FakeClock()
        self.source: Recorded = incident.source()
        self.mirror = Mirror(self.clock)
        self.mirror.meet(incident.welcome(**welcome))
        self.mirror.load(incident.status())
        self.log = CommandLog()
        self.questions: list[Question] = []
        self.read: list[str] = []
        self.answer: Options | None = Options()
        self.acting = Acting(
            self.source,
            self.mirror,
            self.log,
            ask=self._asked,
            say=lambda text, severity: self.read.append(text),
            read_only=read_only,
        )

    async def _asked(self, question: Question) -> Options | None:
        self.questions.append(question)
        return self.answer

    @property
    def fates(self) -> list[str]:
        return [entry.fate.word for entry in self.log.entries]


def one(id: int, state: Any) -> Ids:
    return Ids(ids=(str(id),), expected={str(id): state})


async def test_a_safe_verb_on_one_job_is_done_without_a_question() -> None:
    operator = Operator()

    fate = await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))

    assert fate is not None
    assert fate.done == {"235"}
    assert operator.questions == []
    assert operator.source.commanded == [Act(verb="requeue", ids=["235"], expected="dead")]
    assert operator.fates == ["done"]


async def test_killing_is_asked_about_and_not_done_without_a_yes() -> None:
    operator = Operator()
    operator.answer = None

    assert await operator.acting.carry_out(Intent(verb="kill", selection=one(238, LEASED))) is None

    assert [question.rung for question in operator.questions] == [Rung.ASK]
    assert operator.source.commanded == []
    assert operator.log.entries == []


async def test_a_set_is_frozen_at_the_moment_it_is_asked_about() -> None:
    operator = Operator()
    everything_dead = Matching(where="state:dead", number=400)

    await operator.acting.carry_out(Intent(verb="requeue", selection=everything_dead, whole=True))

    question = operator.questions[0]
    assert question.rung is Rung.TYPE_THE_NUMBER
    assert question.number == 30
    assert operator.source.commanded == [Act(verb="requeue", where="state:dead", newest=235)]


async def test_the_options_of_the_dialog_are_what_is_sent() -> None:
    operator = Operator()
    operator.answer = Options(canary=1, pace="50/min", reason="db2 is back")

    await operator.acting.carry_out(
        Intent(verb="requeue", selection=Matching(where="state:dead", number=400))
    )

    assert operator.source.commanded == [
        Act(
            verb="requeue",
            where="state:dead",
            newest=235,
            canary=1,
            pace="50/min",
            reason="db2 is back",
        )
    ]


async def test_what_makes_no_sense_for_a_job_is_refused_here_in_words() -> None:
    operator = Operator()

    await operator.acting.carry_out(Intent(verb="kill", selection=one(234, QUEUED)))

    assert operator.read == ["job 234 is queued; kill is for jobs that are running"]
    assert operator.questions == []
    assert operator.source.commanded == []


def hopeless(operator: Operator, *ids: int) -> None:
    operator.source.jobs = [
        replace(job, reason="permanent") if job.id in ids else job for job in operator.source.jobs
    ]


async def test_what_only_force_can_do_is_asked_about_with_what_speaks_against_it() -> None:
    operator = Operator()
    hopeless(operator, 235)
    asked: list[Question] = []

    async def yes(question: Question) -> Options | None:
        asked.append(question)
        return question.wish.options

    operator.acting.ask = yes
    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))

    assert [question.despite for question in asked] == [{"the failure is permanent": 1}]
    assert operator.source.commanded == [
        Act(verb="requeue", ids=["235"], expected="dead", force=True)
    ]


async def test_of_a_set_only_what_can_be_done_is_counted() -> None:
    operator = Operator()
    hopeless(operator, 235, 227)

    await operator.acting.carry_out(
        Intent(verb="requeue", selection=Matching(where="state:dead", number=30))
    )

    assert operator.questions[0].number == 28
    assert operator.questions[0].despite == {}


async def test_when_there_is_nothing_left_to_do_that_is_said() -> None:
    operator = Operator()
    operator.source.jobs = []

    await operator.acting.carry_out(
        Intent(verb="discard", selection=Matching(where="state:dead", number=30))
    )

    assert operator.read == ["discard 30 jobs: nothing to do: nothing matches any more"]
    assert operator.source.commanded == []


async def test_nothing_is_sent_on_a_stale_picture() -> None:
    operator = Operator()
    operator.clock.move(10)

    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))

    assert "may be out of date (lagging 10s)" in operator.read[0]
    assert operator.source.commanded == []


async def test_a_link_that_breaks_while_the_dialog_stands_open_sends_nothing() -> None:
    operator = Operator()

    async def slow(question: Question) -> Options | None:
        operator.clock.move(10)
        return Options()

    operator.acting.ask = slow
    await operator.acting.carry_out(Intent(verb="kill", selection=one(238, LEASED)))

    assert operator.source.commanded == []


async def test_a_key_that_is_held_down_asks_its_question_once() -> None:
    operator = Operator()
    answered = asyncio.Event()

    async def slow(question: Question) -> Options | None:
        operator.questions.append(question)
        if question is operator.questions[0]:
            await answered.wait()
        return Options()

    operator.acting.ask = slow
    kill = Intent(verb="kill", selection=one(238, LEASED))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(operator.acting.carry_out(kill))
        repeated = [group.create_task(operator.acting.carry_out(kill)) for _ in range(2)]
        await asyncio.wait(repeated)
        answered.set()
        await first
    await operator.acting.carry_out(kill)

    assert len(operator.questions) == len(operator.source.commanded) == 2
    notes = [text for _, text in operator.log.notes]
    assert notes == ["kill job 238: not asked about, another question was open"] * 2


async def test_who_may_only_look_is_told_why() -> None:
    whys = {"viewer role": Operator(role="viewer"), "--read-only": Operator(read_only=True)}
    for why, operator in whys.items():
        await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))

        assert why in operator.read[0]
        assert operator.source.commanded == []


async def test_a_refusal_is_told_with_its_hint_and_kept_in_the_log() -> None:
    operator = Operator()
    operator.source.fault = TryLater("job 235 was requeued 10 s ago", hint="wait 50 s")

    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))

    assert operator.read == ["requeue job 235: job 235 was requeued 10 s ago; wait 50 s"]
    assert operator.fates == ["refused"]


async def test_an_answer_that_was_lost_is_unknown_until_the_daemon_is_asked_again() -> None:
    operator = Operator()
    operator.source.fault = AnswerLost("the daemon went away", request="x")
    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))
    assert operator.fates == ["unknown"]

    await operator.acting.settle_unknown()

    assert operator.fates == ["refused"]
    assert "never got it" in operator.read[-1]


async def test_a_lost_answer_to_what_was_done_turns_out_done() -> None:
    operator = Operator()
    operator.source.fault = AnswerLost("the daemon went away", request="x")
    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))
    operator.source.keys.append(operator.log.entries[0].wish.key)

    await operator.acting.settle_unknown()

    assert operator.fates == ["done"]


async def test_what_cannot_be_asked_yet_stays_unknown() -> None:
    operator = Operator()
    operator.source.fault = AnswerLost("the daemon went away", request="x")
    await operator.acting.carry_out(Intent(verb="requeue", selection=one(235, DEAD)))
    operator.source.lost = True

    await operator.acting.settle_unknown()

    assert operator.fates == ["unknown"]


async def test_a_pause_can_be_undone_for_a_while() -> None:
    operator = Operator()
    mail = Named(kind="queue", name="mail")

    await operator.acting.carry_out(Intent(verb="pause", selection=mail))
    assert "z undoes it" in operator.read[0]
    await operator.acting.undo()

    assert operator.source.commanded == [PauseIt(name="queue:mail"), ResumeIt(name="queue:mail")]


async def test_what_changed_nothing_is_not_undone() -> None:
    operator = Operator()
    operator.source.changes = False
    mail = Named(kind="queue", name="mail")

    await operator.acting.carry_out(Intent(verb="resume", selection=mail))
    assert "undo" not in operator.read[0]
    await operator.acting.undo()

    assert operator.read[-1] == "nothing to undo"
    assert operator.source.commanded == [ResumeIt(name="queue:mail")]


async def test_of_a_set_that_was_done_in_part_only_that_part_is_undone() -> None:
    operator = Operator()
    refused = Refused(code="wrong_state", message="it is held already")
    operator.source.outcomes = {"232": Outcome(id="232", done=False, refused=refused)}
    both = Ids(ids=("232", "240"), expected={"232": RETRY, "240": RETRY})

    await operator.acting.carry_out(Intent(verb="hold", selection=both))
    assert operator.read[0].startswith("hold 2 jobs: 1 held; not 232: it is held already; z undoes")
    await operator.acting.undo()

    assert operator.source.commanded[1:] == [Act(verb="release", ids=["240"])]


async def test_a_run_with_results_is_made_anew_only_after_a_question() -> None:
    operator = Operator()
    done = Intent(verb="requeue", selection=Ids(ids=("r7",)))

    async def yes(question: Question) -> Options | None:
        operator.questions.append(question)
        return question.wish.options

    operator.acting.ask = yes
    await operator.acting.carry_out(done)

    [question] = operator.questions
    assert question.despite == {"it has results; all of it would be made again": 1}
    assert operator.source.commanded == [Act(verb="requeue", ids=["r7"], again=True)]


async def test_after_a_while_there_is_nothing_to_undo() -> None:
    operator = Operator()
    await operator.acting.carry_out(
        Intent(verb="hold", selection=Ids(ids=("240",), expected={"240": RETRY}))
    )
    operator.clock.move(UNDO_SECONDS + 0.1)
    operator.mirror.heard()

    await operator.acting.undo()

    assert operator.read[-1] == "nothing to undo"
    assert len(operator.source.commanded) == 1


async def test_undo_is_not_offered_where_it_is_not_real() -> None:
    operator = Operator()

    await operator.acting.carry_out(Intent(verb="cancel", selection=one(240, RETRY)))

    assert "undo" not in operator.read[0]
