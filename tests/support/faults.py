"""Jobs that go wrong in every way there is, for tests of what becomes of them."""

from __future__ import annotations

HANDLERS = """
import os, signal, subprocess, sys, time
import redrive

def note(path, text):
    with open(path, "a") as file:
        file.write(f"{text}\\n")

def write(path, n, seconds=0.0):
    time.sleep(seconds)
    note(path, n)

def hang(path):
    note(path, os.getpid())
    time.sleep(600)

def family(path):
    "Hangs the first time, with a child that has run away."
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note(path, child.pid)
    note(path, os.getpid())
    if redrive.current_job().attempt == 1:
        time.sleep(600)
    child.kill()
    child.wait()

def runaway(path, env=None):
    "Forks twice, leaves its session, ignores SIGTERM, holds stdout."
    script = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(PATH, "a").write(f"{os.getpid()}\\\\n")
while True: time.sleep(1)
'''.replace("PATH", repr(path))
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

def beat_and_hang(path):
    job = redrive.current_job()
    job.heartbeat()
    note(path, os.getpid())
    while job.attempt == 1:
        time.sleep(0.05)

def complete_late(path):
    "Beats until it is asked to go, the first time, and then completes all the same."
    job = redrive.current_job()
    note(path, os.getpid())
    try:
        while job.attempt == 1:
            job.heartbeat()
            time.sleep(0.02)
    except BaseException:
        note(path, "late")
    return {"attempt": job.attempt}

def beat_for(path, seconds):
    job = redrive.current_job()
    note(path, os.getpid())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job.heartbeat()
        time.sleep(0.05)

def close_call(n):
    "Ends when its watchdog is about to bite."
    redrive.current_job().heartbeat()
    time.sleep(0.35 + n % 10 * 0.025)

def vanish():
    os._exit(7)

def shout(n):
    print("x" * 1000)
"""

TASKS = """
[pools.default]
path = ["."]
processes = 4

[retry.soon]
max_attempts = 3
delays = ["50ms"]
jitter = 0
[retry.always]
max_attempts = 100000
delays = ["10ms"]
jitter = 0

[tasks.write]
python = "handlers:write"
[tasks.hang]
python = "handlers:hang"
retry = "soon"
grace = "300ms"
[tasks.family]
python = "handlers:family"
retry = "soon"
grace = "1s"
[tasks.runaway]
python = "handlers:runaway"
grace = "500ms"
[tasks.vanish]
python = "handlers:vanish"
retry = "always"
[tasks.vanish_once]
python = "handlers:vanish"
retry = 1
[tasks.vanish_fail]
python = "handlers:vanish"
retry = "soon"
on_lost = "fail"
[tasks.vanish_hold]
python = "handlers:vanish"
retry = "soon"
on_lost = "hold"
[tasks.shout]
python = "handlers:shout"
[tasks.sleep]
command = ["sleep", "600"]
grace = "1s"
retry = "soon"
[tasks.stubborn]
command = "trap '' TERM; echo $$ >> stubborn; while :; do sleep 0.1; done"
grace = "500ms"
[tasks.brood]
command = "setsid sleep 600 & echo $! >> brood; setsid -f sleep 600; sleep 600"
grace = "1s"
retry = "soon"
[tasks.holder]
command = "setsid -f sleep 600; echo done"
[tasks.say]
command = ["echo", "said"]
"""
PATIENT = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 4
shutdown_grace = "300ms"
"""
LONG_GRACE = PATIENT.replace("300ms", "10m")
