"""The HTTP side, when `[http]` is set: the same answers as on the bus, for other programs.

Imported only then: a daemon without it carries neither Starlette nor uvicorn.
"""
