"""Text documents, cut into chunks of whole sentences."""

import re

FORMATS = (".txt", ".md")
LONGEST = 400  # characters of a chunk

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")


class UnsupportedFormat(Exception):
    """Not a text document."""


class InvalidFile(Exception):
    """Called one, but it is none."""


def chunks_of(path):
    if path.suffix not in FORMATS:
        raise UnsupportedFormat(f"unsupported format {path.suffix or 'without a suffix'}")
    content = path.read_bytes()
    if b"\0" in content:
        raise InvalidFile(f"invalid file: {path.name} is not a text")
    paragraphs = content.decode("utf-8").split("\n\n")
    return [chunk for paragraph in paragraphs for chunk in _chunks(" ".join(paragraph.split()))]


def _chunks(paragraph):
    chunk = ""
    for sentence in _SENTENCE_ENDS.split(paragraph):
        if chunk and len(chunk) + len(sentence) >= LONGEST:
            yield chunk
            chunk = ""
        chunk = f"{chunk} {sentence}".strip()
    if chunk:
        yield chunk
