"""What becomes of a job after an attempt: facts in, verdict out.

The daemon decides with it, and so does `redrive.testing`: a rehearsal is the real thing.
"""
