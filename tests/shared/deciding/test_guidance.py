"""Nobody is promised a retry that will not come."""

from __future__ import annotations

import pytest

from redrive.builtin_rules import KINDS
from redrive.deciding.guidance import once_over


@pytest.mark.parametrize(
    ("guidance", "told"),
    [
        ("Will retry automatically.", "Requeue the job once the cause is gone."),
        (
            "Will retry automatically. Large documents may take longer.",
            "Large documents may take longer. Requeue the job once the cause is gone.",
        ),
        ("", "Requeue the job once the cause is gone."),
        ("Please re-upload the document.", "Please re-upload the document."),
        ("Raise the quota or wait until midnight.", "Raise the quota or wait until midnight."),
        ("Supported formats: PDF, XLSX, DOCX, TXT", "Supported formats: PDF, XLSX, DOCX, TXT"),
    ],
)
def test_advice_stays_and_promises_go(guidance: str, told: str) -> None:
    assert once_over(guidance) == told


@pytest.mark.parametrize("name", KINDS)
def test_no_built_in_guidance_promises_a_retry_once_it_is_over(name: str) -> None:
    told = once_over(KINDS[name].guidance)
    assert told
    assert "retry" not in told.lower()
