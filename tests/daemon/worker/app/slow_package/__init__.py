"""Takes as long to import as its importer wants, and needs its part by name then."""

import sys

from .part import *  # this binds `part`, too, but only the first time

app_handlers = sys.modules["app_handlers"]
app_handlers.touch_and_wait(*app_handlers.gate)
VALUE = globals()["part"].VALUE
