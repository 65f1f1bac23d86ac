"""What stands in README.md and docs/*.md: fenced blocks, links, words set as code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\w[\w.-]*\.\w+)\n")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_EXITS = re.compile(r"# exits (\d+)")


class Block(NamedTuple):
    language: str
    text: str

    @property
    def name(self) -> str | None:
        """The file it is: its first line is a comment that says so."""
        found = _NAME.match(self.text)
        return found[1] if found else None


class Line(NamedTuple):
    """A line for a shell, and what it exits with: 0, or what its comment says."""

    text: str
    exits: int


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _FENCE.findall(page.read_text())]


def files(page: Path) -> dict[str, str]:
    return {block.name: block.text for block in blocks(page) if block.name}


def shell_lines(page: Path) -> Iterator[Line]:
    """What a reader would type."""
    for block in blocks(page):
        if block.language == "sh" and not block.name:
            for text in block.text.splitlines():
                exits = _EXITS.search(text)
                yield Line(text, int(exits[1]) if exits else 0)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The files that a page points to, each with the heading in it, if any."""
    for target in _LINK.findall(page.read_text()):
        if "://" not in target:
            path, _, heading = unquote(target).partition("#")
            yield (page.parent / path).resolve() if path else page, heading


def code(page: Path) -> list[str]:
    """The words set as code in its prose, without line breaks."""
    prose = _FENCE.sub("", page.read_text())
    return [" ".join(words.split()) for words in _CODE.findall(prose)]


def headings(page: Path) -> set[str]:
    """As links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
