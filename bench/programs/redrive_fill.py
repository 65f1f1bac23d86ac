"""Enqueue so many jobs one by one: redrive_fill.py COUNT"""

import sys

from gate import at_the_signal

from redrive.blocking import Client

with Client("config.toml") as client:
    at_the_signal(int(sys.argv[1]), lambda: client.enqueue("noop"))
