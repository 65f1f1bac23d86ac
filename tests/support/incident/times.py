"""When it happened."""

from __future__ import annotations

from redrive.clock import SECOND
from support.clock import START

NOW = START
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
