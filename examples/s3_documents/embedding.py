"""A small local embedding: the trigrams of a text, hashed into a vector of length one.

Texts that share many trigrams point in similar directions; nothing is learnt, nothing is asked
of anybody.
"""

import math
import re
from hashlib import blake2b

DIMENSIONS = 256
SHORTEST_WORD = 4  # letters; the shorter ones are in every text


def words_of(text):
    return re.findall(r"[^\W\d_]+", text.lower())


def vector_of(text):
    vector = [0.0] * DIMENSIONS
    for word in words_of(text):
        if len(word) < SHORTEST_WORD:
            continue
        padded = f" {word} "
        for start in range(len(padded) - 2):
            hashed = blake2b(padded[start : start + 3].encode(), digest_size=4).digest()
            # The sign makes collisions cancel out rather than add up.
            vector[hashed[0]] += 1 if hashed[1] & 1 else -1
    return scaled(vector)


def scaled(vector):
    """Of length one; a vector of nothing stays as it is."""
    length = math.hypot(*vector)
    return [part / length for part in vector] if length else vector


def likeness(one, other):
    """The cosine of the angle between two vectors of length one."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def middle_of(vectors):
    return scaled([sum(parts) for parts in zip(*vectors, strict=True)])
