"""What can be done to jobs, the same in the list and in the detail of one."""

from __future__ import annotations

from collections.abc import Sequence

from textual import work

from redrive.errors import RedriveError
from redrive.lifecycle import FINISHED
from redrive.models import Job
from redrive.protocol.queries import Why, WhyReply
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.copying import copyable
from redrive_tui.reading import why_lines
from redrive_tui.screens.pane import Pane
from redrive_tui.verbs import VERBS, applies
from redrive_tui.widgets.dialogs import Choice, Page
from redrive_tui.wishes import Fate, Ids, Selection


class JobActions(Pane):
    """The base of the panes about jobs: they say which jobs are meant."""

    BINDINGS = keys.bindings("jobs", "job")

    @property
    def current_job(self) -> Job | None:
        """The one job that is looked at."""
        raise NotImplementedError

    def chosen_jobs(self) -> list[Job]:
        """The jobs that are meant, as far as they are here."""
        return [self.current_job] if self.current_job else []

    def selection(self) -> Selection | None:
        """What a verb is for; None when there is nothing."""
        return self.ids(self.chosen_jobs())

    def hidden_jobs(self) -> int:
        """How many of the chosen jobs cannot be seen."""
        return 0

    @staticmethod
    def ids(jobs: Sequence[Job]) -> Ids | None:
        expected = {str(job.id): job.state for job in jobs}
        return Ids(ids=tuple(expected), expected=expected) if expected else None

    def settled(self, intent: Intent, fate: Fate) -> None:
        table = self.meant_table()
        if table is not None and isinstance(intent.selection, Ids):
            table.send_away({int(one) for one in fate.done})

    def action_act(self, verb: str) -> None:
        selection = self.selection()
        if selection is None:
            self.post_message(self.Said("there is no job under the cursor"))
        else:
            self.ask(Intent(verb=verb, selection=selection, hidden=self.hidden_jobs()))

    def impossible(self) -> set[str]:
        jobs = self.chosen_jobs()
        return {
            f"job.{verb}"
            for verb in ("cancel", "restart", "kill", "hold", "release", "discard")
            if not any(applies(VERBS[verb], job.state) for job in jobs)
        }

    def action_rerun(self) -> None:
        """Another life for what has ended; for what waits, the end of its wait."""
        ended = any(job.state in FINISHED for job in self.chosen_jobs())
        self.action_act("requeue" if ended else "run-now")

    @work(group="dialog", exit_on_error=False)
    async def action_why(self) -> None:
        job = self.current_job
        if job is None:
            self.post_message(self.Said("there is no job under the cursor"))
            return
        try:
            why: WhyReply = await self.desk.source.ask(Why(id=str(job.id)))
        except RedriveError as problem:
            self.failed(problem)
            return
        await self.answer_to(Page(f"Why is job {job.id} where it is?", why_lines(why)))

    def action_output(self) -> None:
        if (job := self.current_job) is not None:
            self.post_message(self.Go("job", filter="output", job=job.id))

    def action_copy(self) -> None:
        if (job := self.current_job) is not None:
            self.post_message(self.Copied(str(job.id)))

    @work(group="dialog", exit_on_error=False)
    async def action_copy_menu(self) -> None:
        if (job := self.current_job) is not None:
            text = await self.answer_to(Choice("Copy", copyable(job)))
            if text is not None:
                self.post_message(self.Copied(text))
