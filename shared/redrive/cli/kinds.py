"""The kinds of value that options and arguments take: functions from what was typed."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec
from click import BadParameter

from redrive.clock import from_datetime
from redrive.config.values import parse_duration, parse_rate

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_NOT_JSON = (ValueError, RecursionError)
_ID = re.compile(r"r?[1-9][0-9]{0,17}")


def duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadParameter(str(error)) from None


def rate(text: str) -> str:
    try:
        parse_rate(text)
    except ValueError as error:
        raise BadParameter(str(error)) from None
    return text


def time(text: str) -> int:
    """ISO 8601; without an offset, in the zone of the machine."""
    try:
        return from_datetime(datetime.fromisoformat(text).astimezone())
    except ValueError:
        raise BadParameter(f"{text!r} is no time such as 2026-12-01T08:00:00Z") from None


def share(text: str) -> float:
    """`20%` or `0.2`."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise BadParameter(f"{text!r} is no share such as 20% or 0.2")
    return value


def count(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadParameter(f"{text!r} is no number such as 1, 2 or 50")
    return int(text)


def seq(text: str) -> int:
    """That of an event; 0 is before the first."""
    if text != "0" and not _NUMBER.fullmatch(text):
        raise BadParameter(f"{text!r} is no seq: it is a number, such as 4711")
    return int(text)


def redrive(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadParameter(f"{text!r} is no redrive: its id is a number, such as 3")
    return int(text)


def job(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadParameter(f"{text!r} is no job: its id is a number, such as 12")
    return int(text)


def id(text: str) -> str:
    """A job (`12`) or a run (`r7`)."""
    if not _ID.fullmatch(text):
        raise BadParameter(f"{text!r} is no id: a job's is a number (12), a run's has an r (r7)")
    return text


def ids(text: str) -> list[str]:
    """One or several: `12`, `12,13,r7`."""
    return [id(each) for each in text.split(",")]


def pair(text: str) -> tuple[str, Any]:
    """`KEY=VALUE`; the value is JSON when it can be read as that, else text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadParameter(f"{text!r} is not KEY=VALUE")
    try:
        return key, msgspec.json.decode(value)
    except _NOT_JSON:
        return key, value


def json_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except _NOT_JSON as error:
        raise BadParameter(f"that is no JSON object: {error}") from None
