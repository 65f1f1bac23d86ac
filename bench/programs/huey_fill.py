"""Enqueue so many jobs one by one: huey_fill.py COUNT"""

import sys

from gate import at_the_signal
from huey_tasks import noop

at_the_signal(int(sys.argv[1]), noop)
