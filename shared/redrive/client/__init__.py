"""Speaking to the daemon from Python: one implementation, asyncio; `redrive.blocking` wraps it."""

from __future__ import annotations

from redrive.client.addresses import Addresses
from redrive.client.client import AsyncClient
from redrive.client.follower import Away, Resync, Told
from redrive.client.refusals import AnswerLost, DaemonSilent

__all__ = ["Addresses", "AnswerLost", "AsyncClient", "Away", "DaemonSilent", "Resync", "Told"]
