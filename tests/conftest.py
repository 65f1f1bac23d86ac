"""What holds for every test."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# A loaded machine is no failure: no example has a deadline. In CI the examples are the same
# every time, so that a change that fails has failed by itself.
settings.register_profile(
    "redrive", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("redrive"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "redrive")

# Whoever starts the tests in the background may have it ignored, and what we start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
