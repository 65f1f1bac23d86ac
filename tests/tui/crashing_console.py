"""The console with a key that breaks it, as a program of its own: for a test with a terminal."""

from __future__ import annotations

from redrive_tui.__main__ import main
from redrive_tui.app import Console


def broken(_: Console) -> None:
    raise RuntimeError("something nobody thought of")


if __name__ == "__main__":
    Console.action_log = broken  # type: ignore[assignment,method-assign]
    main()
