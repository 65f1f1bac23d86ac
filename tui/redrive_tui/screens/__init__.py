"""The screens: panes of one screen, mounted when they are first looked at."""

from __future__ import annotations

from collections.abc import Mapping

from redrive_tui.screens.dead import DeadPane
from redrive_tui.screens.events import EventsPane
from redrive_tui.screens.job import JobPane
from redrive_tui.screens.jobs import JobsPane
from redrive_tui.screens.nodes import NodesPane
from redrive_tui.screens.overview import OverviewPane
from redrive_tui.screens.pane import Pane
from redrive_tui.screens.queues import QueuesPane
from redrive_tui.screens.runs import RunsPane
from redrive_tui.screens.schedules import SchedulesPane

PANES: Mapping[str, type[Pane]] = {
    pane.context: pane
    for pane in (
        OverviewPane,
        JobsPane,
        DeadPane,
        RunsPane,
        QueuesPane,
        SchedulesPane,
        NodesPane,
        EventsPane,
        JobPane,
    )
}
