"""What every verb is given: which config, which form of output, and the way to the daemon."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from redrive.config import Config, Loaded, Problem, find_config, load, load_client
from redrive.errors import RedriveError

if TYPE_CHECKING:
    from redrive.blocking import Client
    from redrive.client import AnswerLost

_PATIENCE = 3.0  # seconds for the fate of a command, after its own time


class Settings:
    config_path: str | None = None
    as_json: bool = False

    @cached_property
    def config(self) -> Config:
        """The tables that clients read; a mistake elsewhere keeps nobody from the daemon."""
        loaded = load_client(find_config(self.config_path))
        if loaded.problems:
            self._warn(loaded.problems)
        return loaded.config

    def _warn(self, problems: Sequence[Problem]) -> None:
        from redrive.cli.output import remark

        remark(f"redrive: {problems[0]}")
        remark("  a daemon that runs goes on without it; `redrive config check` says what is wrong")

    def whole_config(self, *, look_around: bool = False) -> Loaded:
        return load(find_config(self.config_path), look_around=look_around)

    @contextmanager
    def client(self) -> Generator[Client]:
        from redrive.blocking import Client
        from redrive.client import AnswerLost

        with Client(self.config, name="redrive command line") as client:
            try:
                yield client
            except AnswerLost as lost:
                lost.hint = lost.hint.replace(lost.in_doubt, _fate(client, lost))
                raise


def _fate(client: Client, lost: AnswerLost) -> str:
    """What became of a command whose answer did not come, if anybody can tell."""
    from redrive.protocol.queries import Fate, FateReply

    try:
        reply: FateReply = client.ask(Fate(request=lost.request), timeout=_PATIENCE)
    except RedriveError:
        return lost.in_doubt
    if reply.refusal is not None:
        return f"it was refused: {reply.refusal}"
    return "it was carried out all the same" if reply.known else "it was not carried out"
