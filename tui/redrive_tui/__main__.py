"""`redrive` in a terminal: the console, on the real link."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from redrive.cli.terminal import has_terminal
from redrive.config import Config, find_config, load_client
from redrive.errors import Exit, RedriveError


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="redrive", description="The redrive console; `redrive --help` shows the commands."
    )
    parser.add_argument("--config", metavar="FILE", help="default: as for `redrive`")
    parser.add_argument("--read-only", action="store_true", help="look, change nothing")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    parser.add_argument("--ascii", action="store_true", help="plain characters instead of glyphs")
    options = parser.parse_args()
    if not has_terminal():
        # Without a terminal Textual would write escape codes and wait for ever.
        sys.exit("redrive: the console needs a terminal\n  `redrive status` prints the same")
    try:
        config = load_client(find_config(options.config, os.environ)).config
        asyncio.run(_show(config, options))
    except RedriveError as problem:
        print(f"redrive: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"  {problem.hint}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except Exception:  # noqa: BLE001 - the last resort: a clean terminal and a report
        _report_crash()


async def _show(config: Config, options: argparse.Namespace) -> None:
    from redrive_tui import keymap
    from redrive_tui.app import Console, Settings
    from redrive_tui.formatting import Look
    from redrive_tui.link import Link
    from redrive_tui.palettes import MONO
    from redrive_tui.terminal import show
    from redrive_tui.views import Views, views_path

    console = config.console
    link = Link(config)
    app = Console(
        link,
        Settings(
            theme=MONO if os.environ.get("NO_COLOR") else console.theme,
            look=Look(ascii=options.ascii, zone=None),
            keymap=keymap.load(Path(console.keymap)) if console.keymap else {},
            read_only=options.read_only,
            views=Views(views_path(os.environ)),
        ),
    )
    try:
        await show(app, mouse=not options.no_mouse)
    finally:
        await link.close()


def _report_crash() -> None:
    from redrive.cli.crashes import write_report

    path = write_report("console")
    print(f"redrive: the console broke down; what happened is in {path}", file=sys.stderr)
    print("  the daemon is not concerned; `redrive` opens the console again", file=sys.stderr)
    sys.exit(Exit.INTERNAL)


if __name__ == "__main__":
    main()
