"""Every key, in one table.

Lowercase looks, or does what is safe and reversible; a capital changes work that is running
or cannot be taken back. ctrl+d, ctrl+k, ctrl+w, ctrl+s and ctrl+z are never destructive:
fingers know them from vim and the shell. A context is a place whose keys are live together
with those of `SCREENS`; the help, the hints and the keymap file all read this table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from textual.binding import Binding, BindingType


class Key(Struct, frozen=True):
    id: str
    keys: str  # comma-separated; characters, or names as Textual has them
    action: str
    description: str
    hint: str = ""  # the word at the bottom of the screen; empty: not shown there
    destructive: bool = False


def _contexts(**contexts: Sequence[Key]) -> Mapping[str, Sequence[Key]]:
    return contexts


KEYS = _contexts(
    everywhere=[
        Key("go.overview", "1", "app.show('overview')", "go to overview"),
        Key("go.jobs", "2", "app.show('jobs')", "go to jobs"),
        Key("go.dead", "3", "app.show('dead')", "go to dead jobs, by cause"),
        Key("go.runs", "4", "app.show('runs')", "go to runs and batches"),
        Key("go.queues", "5", "app.show('queues')", "go to queues"),
        Key("go.schedules", "6", "app.show('schedules')", "go to schedules"),
        Key("go.nodes", "7", "app.show('nodes')", "go to nodes"),
        Key("go.events", "8", "app.show('events')", "go to events"),
        Key("go.back", "escape", "app.back", "one step back"),
        Key("go.leave", "q", "app.leave", "back; at the top, quit (the daemon goes on)"),
        Key("go.previous", "-", "app.previous", "previous screen"),
        Key("app.palette", ":", "app.command_palette", "commands, go to, themes", "commands"),
        Key("app.help", "?", "app.help", "help for this screen", "help"),
        Key("app.log", "o", "app.log", "my commands and what became of them"),
        Key("app.undo", "z", "app.undo", "undo, while it can be"),
        Key("view.freeze", "u", "app.freeze", "freeze or thaw live updates"),
        Key("view.reread", "ctrl+r", "app.reread", "read again now"),
        Key("view.zoom", "+", "app.zoom", "zoom this pane"),
        Key("view.unzoom", "_", "app.unzoom", "back to all panes"),
    ],
    movement=[
        Key("move.down", "down,j", "move(1)", "down"),
        Key("move.up", "up,k", "move(-1)", "up"),
        Key("move.page_down", "pagedown", "page(1)", "a page down"),
        Key("move.page_up", "pageup", "page(-1)", "a page up"),
        Key("move.half_down", "ctrl+d", "page(0.5)", "half a page down"),
        Key("move.half_up", "ctrl+u", "page(-0.5)", "half a page up"),
        Key("move.first", "g,home", "first", "first"),
        Key("move.last", "G,end", "last", "last"),
    ],
    open=[Key("list.open", "enter", "open", "open", "open")],
    filter=[
        Key("list.filter", "/", "filter", "filter", "filter"),
        Key("list.sort", "s", "sort", "sort by"),
        Key("list.reverse", "S", "reverse", "reverse the order"),
        Key("list.export", "ctrl+s", "export", "export what is listed (csv, jsonl)"),
    ],
    marks=[
        Key("mark.one", "space", "mark", "mark, and move down", "mark"),
        Key("mark.range", "v", "range", "start or end a range of marks"),
        Key("mark.down", "shift+down", "mark_move(1)", "mark downwards"),
        Key("mark.up", "shift+up", "mark_move(-1)", "mark upwards"),
        Key("mark.all", "A", "mark_all", "mark all that match the filter", "all matching"),
        Key("mark.none", "U", "unmark", "unmark all"),
    ],
    tabs=[
        Key("tab.previous", "[", "tab(-1)", "previous tab"),
        Key("tab.next", "]", "tab(1)", "next tab", "tabs"),
    ],
    jobs=[
        Key("job.rerun", "r", "rerun", "requeue; a waiting job: run now", "run again"),
        Key("job.cancel", "c", "act('cancel')", "cancel", "cancel"),
        Key("job.restart", "R", "act('restart')", "restart: end this attempt, run again now"),
        Key("job.hold", "h", "act('hold')", "hold a waiting job"),
        Key("job.release", "H", "act('release')", "release a held job"),
        Key("job.kill", "K", "act('kill')", "kill: end the process, no grace", "kill", True),
        Key("job.discard", "D", "act('discard')", "discard a dead or cancelled job", "", True),
    ],
    job=[
        Key("job.why", "x", "why", "why is it not running, or why did it end", "why"),
        Key("job.output", "l", "output", "what it printed", "output"),
        Key("job.copy", "y", "copy", "copy the id"),
        Key("job.copy_menu", "Y", "copy_menu", "copy id, arguments, error or command"),
    ],
    group=[
        Key("group.redrive", "r", "act('requeue')", "requeue the group, paced", "redrive group"),
        Key("group.discard", "D", "act('discard')", "discard the group", "", True),
        Key("group.copy", "y", "copy", "copy the fingerprint"),
    ],
    redrive=[
        Key("redrive.pause", "p", "steer('pause')", "pause the redrive"),
        Key("redrive.resume", "P", "steer('resume')", "let the redrive go on"),
        Key("redrive.undo", "Z", "steer('undo')", "undo the redrive: what has not run yet"),
    ],
    run=[
        Key("run.resume", "r", "resume", "resume from this step", "resume from step"),
        Key("run.copy", "y", "copy", "copy the id"),
    ],
    pausable=[
        Key("pausable.pause", "p", "act('pause')", "pause", "pause"),
        Key("pausable.resume", "P", "act('resume')", "resume", "resume"),
    ],
    queue=[Key("queue.purge", "D", "purge", "discard every dead job of the queue", "", True)],
    schedule=[Key("schedule.trigger", "t", "act('trigger')", "trigger now", "trigger")],
    node=[
        Key(
            "node.drain",
            "X",
            "drain",
            "drain: finish what runs, take no more",
            "drain",
            True,
        )
    ],
    text=[
        Key("text.search", "/", "search", "search", "search"),
        Key("text.next", "n", "found(1)", "next hit"),
        Key("text.previous", "N", "found(-1)", "previous hit"),
        Key("text.follow", "f", "follow", "follow the end", "follow"),
        Key("text.wrap", "w", "wrap", "wrap long lines"),
        Key("text.error", "e", "error(1)", "next error line", "next error"),
        Key("text.error_back", "E", "error(-1)", "previous error line"),
    ],
    times=[Key("text.times", "T", "times", "show times")],
)

_COMMON = ("everywhere", "movement", "open")

# Which contexts are live together; a key may mean one thing only on each screen.
SCREENS: Mapping[str, tuple[str, ...]] = {
    "overview": _COMMON,
    "jobs": (*_COMMON, "filter", "marks", "jobs", "job"),
    "dead": (*_COMMON, "tabs", "redrive", "group"),
    "runs": (*_COMMON, "tabs", "run"),
    "queues": (*_COMMON, "pausable", "queue"),
    "schedules": (*_COMMON, "pausable", "schedule"),
    "nodes": (*_COMMON, "jobs", "job", "node"),
    "events": ("everywhere", "movement", "times", "text"),
    "job": ("everywhere", "movement", "tabs", "jobs", "job"),
    "output": ("everywhere", "movement", "tabs", "jobs", "job", "text"),
}

# Built into Textual; named in the help, not to be moved.
FIXED = [
    Key("", "tab", "", "next pane"),
    Key("", "shift+tab", "", "previous pane"),
    Key("", "ctrl+p", "", "commands"),
    Key("", "ctrl+q", "", "quit"),
]


def bindings(*contexts: str) -> list[BindingType]:
    """The keys of some contexts, for a widget's BINDINGS."""
    return [
        Binding(key.keys, key.action, key.description, id=key.id, show=bool(key.hint))
        for context in contexts
        for key in KEYS[context]
    ]


def every_key() -> dict[str, Key]:
    return {key.id: key for keys in KEYS.values() for key in keys}


# What may not be done from a console that only looks.
CHANGING = frozenset(
    key.id
    for key in every_key().values()
    if key.action.partition("(")[0] in {"act", "rerun", "drain", "purge", "resume", "steer"}
)


def keys_of(screen: str) -> list[Key]:
    """What can be pressed on a screen, the most particular first."""
    return [key for context in reversed(SCREENS[screen]) for key in KEYS[context]]
