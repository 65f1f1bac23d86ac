"""Pipelines: what their definitions say, and what that means for a run; all of it pure.

`definition` is what the catalog stores, `playbook` reads one from a text, `advance` decides
how a run goes on, `status` and `graph` put both into words.
"""

from redrive.pipelines.advance import advance, descendants
from redrive.pipelines.definition import Definition, Step, decode, define, digest, encode
from redrive.pipelines.graph import draw
from redrive.pipelines.playbook import Playbook, read_playbook
from redrive.pipelines.status import status

__all__ = [
    "Definition",
    "Playbook",
    "Step",
    "advance",
    "decode",
    "define",
    "descendants",
    "digest",
    "draw",
    "encode",
    "read_playbook",
    "status",
]
