"""Batches, and the rounds in which their runs go through a gate."""

from __future__ import annotations

from redrive.errors import WrongState
from redrive.pipelines.definition import Step
from redrived.store.unit import Unit


class Rounds:
    """Which round of a gate a run joins: the one that is still closed, else a new one."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._open: dict[tuple[str, str], int] = {}

    def join_batches(self, pipelines: dict[str, str]) -> None:
        """Make room for batches, each of one pipeline."""
        for batch, pipeline in sorted(pipelines.items()):
            self._unit.execute(
                "INSERT INTO batches"
                " (name, pipeline, created_at, round, runs, running, done, failed, cancelled)"
                " VALUES (:name, :pipeline, :now, 1, 0, 0, 0, 0, 0) ON CONFLICT (name) DO NOTHING",
                name=batch,
                pipeline=pipeline,
                now=self._unit.now,
            )
            known = self._unit.execute(
                "SELECT pipeline FROM batches WHERE name = :name", name=batch
            ).scalar()
            if known != pipeline:
                raise WrongState(
                    f"the batch {batch!r} is one of pipeline {known!r}",
                    hint=f"give runs of {pipeline!r} a batch of their own",
                )

    def of(self, batch: str, step: Step) -> int:
        key = (batch, step.name)
        if key not in self._open:
            self._open[key] = self._find(batch, step)
        return self._open[key]

    def _find(self, batch: str, step: Step) -> int:
        lock = "" if self._unit.database.is_sqlite else " FOR UPDATE"
        newest = self._unit.execute(
            "SELECT round, opened_at FROM gates WHERE batch = :batch AND step = :step"
            f" ORDER BY round DESC LIMIT 1{lock}",
            batch=batch,
            step=step.name,
        ).first()
        last, opened_at = newest or (0, None)
        if newest is not None and opened_at is None:
            return int(last)
        number = int(last) + 1
        self._unit.execute(
            "INSERT INTO gates (batch, step, round, unsettled, waiting, first_pass)"
            " VALUES (:batch, :step, :round, 0, 0, 0) ON CONFLICT (batch, step, round) DO NOTHING",
            batch=batch,
            step=step.name,
            round=number,
        )
        self._unit.execute(
            "UPDATE batches SET round = :round WHERE name = :batch AND round < :round",
            batch=batch,
            round=number,
        )
        return number
