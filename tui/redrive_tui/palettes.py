"""The colours of the five themes: plain data, one style for every role.

Tests hold every role to a contrast of 4.5:1 on each background it can meet. Mono uses no
colour at all, only bold, reverse, underline and dim.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Palette(Struct, frozen=True, kw_only=True):
    dark: bool
    background: str
    surface: str  # dialogs, inputs
    cursor: str  # the background of the row under the cursor
    roles: Mapping[str, str]  # rich styles


_DARK = Palette(
    dark=True,
    background="#12151b",
    surface="#1b2029",
    cursor="#2b3a55",
    roles={
        "text": "#d3d9e3",
        "strong": "bold #f0f3f8",
        "dim": "#a0aabb",
        "rule": "#465063",
        "title": "#a0aabb",
        "accent": "#8ab8ff",
        "key": "bold #8ab8ff",
        "good": "#86cf8d",
        "warning": "#e8bd62",
        "error": "bold #ff9088",
        "queued": "#d3d9e3",
        "running": "#79c7ff",
        "scheduled": "#c3adff",
        "retrying": "#e8bd62",
        "done": "#86cf8d",
        "dead": "bold #ff9088",
        "cancelled": "#a0aabb",
        "held": "#e3a4e6",
        "bar": "#79c7ff",
        "spark": "#86cf8d",
        "marked": "bold #e8bd62",
        "found": "bold #12151b on #e8bd62",
        "tab": "bold #f0f3f8 on #2b3a55",
    },
)

_LIGHT = Palette(
    dark=False,
    background="#fbfbf9",
    surface="#f0f1ee",
    cursor="#cfe0f8",
    roles={
        "text": "#23272e",
        "strong": "bold #0b0d10",
        "dim": "#4f5866",
        "rule": "#c9cdd3",
        "title": "#4f5866",
        "accent": "#0b4fa8",
        "key": "bold #0b4fa8",
        "good": "#145f22",
        "warning": "#7a4700",
        "error": "bold #a3121b",
        "queued": "#23272e",
        "running": "#0b4fa8",
        "scheduled": "#5b2fa6",
        "retrying": "#7a4700",
        "done": "#145f22",
        "dead": "bold #a3121b",
        "cancelled": "#4f5866",
        "held": "#8a1f84",
        "bar": "#0b4fa8",
        "spark": "#145f22",
        "marked": "bold #7a4700",
        "found": "bold #23272e on #f5cf73",
        "tab": "bold #0b0d10 on #cfe0f8",
    },
)

_HIGH_CONTRAST = Palette(
    dark=True,
    background="#000000",
    surface="#000000",
    cursor="#00389c",
    roles={
        **_DARK.roles,
        "text": "#ffffff",
        "strong": "bold #ffffff",
        "dim": "#e4e4e4",
        "rule": "#9a9a9a",
        "title": "bold #ffffff",
        "accent": "#a8d4ff",
        "key": "bold #ffff66",
        "good": "#8dff8d",
        "warning": "#ffe066",
        "error": "bold #ffb0a8",
        "queued": "#ffffff",
        "running": "#8fe3ff",
        "scheduled": "#d9c8ff",
        "retrying": "#ffe066",
        "done": "#8dff8d",
        "dead": "bold #ffb0a8",
        "cancelled": "#d0d0d0",
        "held": "#ffb8ff",
        "bar": "#8fe3ff",
        "spark": "#8dff8d",
        "marked": "bold #ffff66",
        "found": "bold #000000 on #ffff66",
        "tab": "bold #000000 on #ffffff",
    },
)

# Blue against orange is the pair that every common colour blindness can tell apart.
_COLOUR_BLIND = Palette(
    dark=True,
    background="#12151b",
    surface="#1b2029",
    cursor="#2b3a55",
    roles={
        **_DARK.roles,
        "good": "#86c5ff",
        "warning": "#e6d36a",
        "error": "bold #ffa04d",
        "running": "#86c5ff",
        "scheduled": "#b9c4d6",
        "retrying": "#e6d36a",
        "done": "#a5cdf0",
        "dead": "bold #ffa04d",
        "held": "#d9c2e8",
        "bar": "#86c5ff",
        "spark": "#86c5ff",
    },
)

_MONO = Palette(
    dark=True,
    background="ansi_default",
    surface="ansi_default",
    cursor="",
    roles={
        **dict.fromkeys(_DARK.roles, "none"),
        "strong": "bold",
        "dim": "dim",
        "rule": "dim",
        "title": "underline",
        "key": "bold",
        "warning": "bold",
        "error": "bold underline",
        "running": "bold",
        "dead": "bold underline",
        "cancelled": "dim",
        "marked": "bold",
        "found": "reverse",
        "tab": "reverse",
    },
)

PALETTES: Mapping[str, Palette] = {
    "dark": _DARK,
    "light": _LIGHT,
    "high-contrast": _HIGH_CONTRAST,
    "colour-blind": _COLOUR_BLIND,
    "mono": _MONO,
}
DEFAULT, MONO = "dark", "mono"
