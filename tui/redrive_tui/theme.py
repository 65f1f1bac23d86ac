"""What roles look like in a theme, and the colour an environment is known by.

Every text on screen plays a role (`formatting.Span`); a palette gives each role a style.
NO_COLOR gets the mono palette: Textual's own answer to it is a picture in grey.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from redrive.config.checks import HEX_COLOUR
from redrive_tui.palettes import DEFAULT, MONO, PALETTES

# What a config may call the colour of its environment, as background; the text on it is chosen.
ENVIRONMENT_COLOURS: Mapping[str, str] = {
    "blue": "#2f6fd0",
    "green": "#2e8b57",
    "yellow": "#e0b000",
    "orange": "#e07b00",
    "red": "#c62f2f",
    "magenta": "#a63fa6",
    "cyan": "#1a8f9e",
    "purple": "#6f42c1",
    "white": "#f2f2f2",
    "grey": "#6b7480",
    "gray": "#6b7480",
}
UNKNOWN_COLOUR = ENVIRONMENT_COLOURS["grey"]


@lru_cache
def style(theme: str, role: str) -> Style:
    """How a role looks; what is no role is a rich style of its own (colours of output).

    A word that is neither, say a state that another daemon knows, is shown without emphasis.
    """
    if role.startswith("environment:"):
        return environment_style(theme, role.partition(":")[2])
    palette = PALETTES.get(theme, PALETTES[DEFAULT])
    try:
        return Style.parse(palette.roles.get(role, role or "none"))
    except StyleSyntaxError:
        return Style.parse(palette.roles["dim"])


@lru_cache
def cursor_style(theme: str) -> Style:
    """Laid over the row under the cursor, in the list that has the keyboard."""
    background = PALETTES.get(theme, PALETTES[DEFAULT]).cursor
    return Style(bgcolor=background) if background else Style(reverse=True)


@lru_cache
def environment_style(theme: str, colour: str) -> Style:
    """The block at the top left that says which environment this is."""
    if theme == MONO:
        return Style(reverse=True, bold=True)
    is_its_own = HEX_COLOUR.fullmatch(colour)
    background = colour if is_its_own else ENVIRONMENT_COLOURS.get(colour, UNKNOWN_COLOUR)
    text = max("#000000", "#ffffff", key=lambda text: contrast(text, background))
    return Style(color=text, bgcolor=background, bold=True)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours as WCAG defines it, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(channel) for channel in Color.parse(colour).normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def textual_theme(name: str) -> Theme:
    """The same palette for Textual's own widgets: inputs, buttons, the command palette."""
    palette = PALETTES[name]
    if name == MONO:
        return _mono_theme()
    roles = {role: Style.parse(spec) for role, spec in palette.roles.items()}

    def colour(role: str) -> str:
        found = roles[role].color
        return found.name if found else palette.background

    return Theme(
        name=name,
        dark=palette.dark,
        primary=colour("accent"),
        secondary=colour("scheduled"),
        accent=colour("accent"),
        warning=colour("warning"),
        error=colour("error"),
        success=colour("good"),
        foreground=colour("text"),
        background=palette.background,
        surface=palette.surface,
        panel=palette.surface,
        variables={
            "rule": colour("rule"),
            "dim": colour("dim"),
            "cursor-style": "none",
            "block-cursor-foreground": colour("strong"),
            "block-cursor-background": palette.cursor,
            "block-hover-background": palette.cursor,
            "border": colour("accent"),
            "border-blurred": colour("rule"),
            "scrollbar": colour("rule"),
            "scrollbar-hover": colour("dim"),
            "scrollbar-active": colour("dim"),
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
        },
    )


def _mono_theme() -> Theme:
    plain = "ansi_default"
    coloured = (
        "rule dim ansi-background ansi-foreground border border-blurred block-cursor-foreground block-cursor-background "
        "block-hover-background scrollbar scrollbar-hover scrollbar-active scrollbar-background "
        "scrollbar-background-hover scrollbar-background-active input-selection-background "
        "footer-key-foreground"
    )
    return Theme(
        name=MONO,
        ansi=True,
        primary=plain,
        foreground=plain,
        background=plain,
        surface=plain,
        panel=plain,
        variables={
            **dict.fromkeys(coloured.split(), plain),
            "cursor-style": "reverse",
            "block-cursor-text-style": "reverse",
        },
    )
