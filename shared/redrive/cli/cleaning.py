"""Text from outside, before the command line prints it."""

from __future__ import annotations

from redrive.printable import visible, without_sequences


def clean_lines(text: str) -> str:
    """Lines and tabs stay."""
    return visible(without_sequences(text))


def clean(text: str) -> str:
    """One line."""
    return " ".join(clean_lines(text).split())
