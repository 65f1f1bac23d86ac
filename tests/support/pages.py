"""The pages of docs/ that are written from the code: `make docs` renews them, a test compares."""

from __future__ import annotations

from pathlib import Path

from support import commands_doc, configuration_doc, keys_doc, protocol_doc

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = {
    "commands.md": commands_doc.rendered,
    "configuration.md": configuration_doc.rendered,
    "keys.md": keys_doc.rendered,
}


def renew() -> None:
    for name, rendered in WRITTEN.items():
        (DOCS / name).write_text(rendered())
    protocol_doc.renew()


if __name__ == "__main__":
    renew()
