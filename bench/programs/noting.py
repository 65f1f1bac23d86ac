"""How old a job is when it starts, appended to a file where the worker runs."""

import time


def note_age(sent: float) -> None:
    with open("ages", "a") as file:
        file.write(f"{time.time() - sent}\n")
