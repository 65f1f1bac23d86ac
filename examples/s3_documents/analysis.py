"""What a document is about, from its chunks and all vectors there are."""

from collections import Counter

from embedding import SHORTEST_WORD, likeness, middle_of, words_of

KEYWORDS = 5
NEIGHBOURS = 3


class NothingToSay(Exception):
    """There is not a word in it."""


def of(document, db):
    chunks = db.chunks(document)
    words = Counter(word for chunk in chunks for word in words_of(chunk))
    if not words:
        raise NothingToSay("there are no words")
    vectors = db.vectors()
    middles = {name: middle_of(each) for name, each in vectors.items()}
    middle = middles.pop(document)
    near = {name: likeness(middle, other) for name, other in middles.items()}
    best = max(range(len(chunks)), key=lambda place: likeness(middle, vectors[document][place]))
    frequent = [word for word, _ in words.most_common() if len(word) >= SHORTEST_WORD]
    return {
        "words": words.total(),
        "keywords": frequent[:KEYWORDS],
        "summary": chunks[best],
        "near": sorted(near, key=near.__getitem__, reverse=True)[:NEIGHBOURS],
    }
