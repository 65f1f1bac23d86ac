"""What daemon and clients say to each other: one struct per message, msgpack by msgspec.

A request is answered by the reply that stands beside it here, or by a `Refusal`. New fields
get defaults, so that a message of yesterday can be read for ever; what cannot be told that
way raises `VERSION`, which the hello compares.
"""

VERSION = 1
