"""`redrived` as a program, except that nodes lose patience with each other in seconds."""

from __future__ import annotations

from importlib import import_module

from redrive.clock import SECOND

# In this order: the second takes over constants of the first.
QUICK: dict[str, dict[str, float]] = {
    "redrived.store.nodes": {"LATE": 2 * SECOND, "LOST": 4 * SECOND},
    "redrived.engine.node": {"BEAT": 0.5},
    "redrived.engine.leadership": {"LENGTH": 3.0, "RENEW": 0.5, "MARGIN": 1.0},
}


def main() -> None:
    for name, constants in QUICK.items():
        vars(import_module(name)).update(constants)
    import_module("redrived.__main__").main()


if __name__ == "__main__":
    main()
