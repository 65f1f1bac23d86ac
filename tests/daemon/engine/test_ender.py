"""What was wished for jobs that never began is not kept for ever."""

from __future__ import annotations

from pathlib import Path

from redrived.engine.attempt import Ending
from redrived.engine.ender import MOST_WISHES
from support.engines import an_engine


async def test_the_newest_wishes_are_kept_and_no_more_of_them_than_can_matter(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path) as engine:
        for job in range(MOST_WISHES + 5):
            engine.ender.wish(job, 1, Ending.CANCEL, "anna")
        engine.ender.wish(5, 2, Ending.KILL, "ben")
        assert len(engine.ender._wishes) == MOST_WISHES
        assert engine.ender._wishes[5] == (2, Ending.KILL, "ben")
        assert min(engine.ender._wishes) == 5
