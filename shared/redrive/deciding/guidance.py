"""What people are told to do about an error, once nothing is retried by itself any more."""

from __future__ import annotations

import re

_PROMISE = "Will retry"
_AGAIN = "Requeue the job once the cause is gone."
_ENDS = re.compile(r"(?<=[.!?])\s+")


def once_over(guidance: str) -> str:
    """`guidance` without the sentences that promise a retry; what was advice stays."""
    sentences = _ENDS.split(guidance) if guidance else []
    advice = [sentence for sentence in sentences if not sentence.startswith(_PROMISE)]
    if advice and len(advice) == len(sentences):
        return guidance
    return " ".join([*advice, _AGAIN])
