"""Whether the interpreters of the pools start, and find the functions their tasks name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from redrive.config import Config
from redrive.config.sections import Pool
from redrive.protocol.rows import Check

PATIENCE = 20.0  # seconds to import everything a pool needs
_BEGUN = "importing "
_FAILED = "failed: "
_FINE = "finds all: "

# What a worker does before its first job; it lends `redrive` to an application without it.
_IMPORT = """
import importlib.util, json, sys
asked = json.loads(sys.argv[1])
sys.path = asked["path"] + [place for place in sys.path if place]
try:
    import redrive
except ImportError:
    spec = importlib.util.spec_from_file_location("redrive", asked["sdk"])
    sys.modules["redrive"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["redrive"])
def failed(how):
    print("failed:", how, flush=True)
    raise
for name in asked["names"]:
    module, _, function = name.partition(":")
    print("importing", module, flush=True)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        failed("no_module" if (module + ".").startswith(str(error.name) + ".") else "needs")
    except BaseException:
        failed("raises")
    try:
        for part in filter(None, function.split(".")):
            found = getattr(found, part)
    except AttributeError:
        failed("no_name")
print("finds all: %d.%d" % sys.version_info[:2])
"""
_HINTS = {
    "no_module": "[pools.{pool}] path must name the folders of its modules; see also `python`",
    "needs": "{module} itself was found: install what it needs for that interpreter,"
    " or add its folder to [pools.{pool}] path",
    "raises": "{module} was found and fails when it is imported: mend it, the path is right",
    "no_name": "{module} was found and has no such name: mend it, or the `python` of the task",
}
_OTHERWISE = "[pools.{pool}] python must name a Python that starts, 3.9 or newer"


def pool_checks(config: Config) -> Iterator[Check]:
    """One for each pool that a task uses."""
    for name in sorted({task.pool for task in config.tasks.values() if task.python}):
        pool = config.pools.get(name, Pool())
        wanted = [t.python for t in config.tasks.values() if t.python and t.pool == name]
        yield _check(name, pool, [*pool.preload, *wanted], config.folder)


def _check(name: str, pool: Pool, names: list[str], folder: str) -> Check:
    python = pool.python or sys.executable
    label = f"pool {name}"
    sdk = str(Path(__file__).with_name("__init__.py"))
    asked = json.dumps({"path": pool.path, "sdk": sdk, "names": names})
    try:
        code, out, err = _run([python, "-c", _IMPORT, asked], folder)
    except subprocess.TimeoutExpired as slow:
        text = f"{python}: {_place(slow.stdout or b'')} has not ended after {PATIENCE:g} s"
        hint = "a module must not wait for anything while it is imported; workers would hang too"
        return Check(name=label, ok=False, text=text, hint=hint)
    except OSError as error:
        text, hint = f"{python} does not run: {error}", _OTHERWISE.format(pool=name)
        return Check(name=label, ok=False, text=text, hint=hint)
    if code == 0 and (version := _last(out, _FINE)):
        return Check(name=label, ok=True, text=f"Python {version} finds all {len(names)} names")
    module = _last(out, _BEGUN)
    how = _last(out, _FAILED) or ("raises" if module else "")
    hint = _HINTS.get(how, _OTHERWISE).format(pool=name, module=module)
    return Check(name=label, ok=False, text=f"{python}: {_how(code, out, err)}", hint=hint)


def _run(argv: list[str], folder: str) -> tuple[int, bytes, bytes]:
    """As `subprocess.run`, which would leave behind what a hanging import has started."""
    with subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err


def _how(code: int, out: bytes, err: bytes) -> str:
    """Why it did not find all."""
    said = err.decode(errors="replace").strip().splitlines()
    last = said[-1] if said else "it said nothing"
    return last if _last(out, _FAILED) else f"it ended with {code} in {_place(out)}: {last}"


def _place(out: bytes) -> str:
    module = _last(out, _BEGUN)
    return f"the import of {module}" if module else "its start"


def _last(out: bytes, beginning: str) -> str:
    """What the last line says that begins so; a module may print anything in between."""
    said = out.decode(errors="replace").splitlines()
    found = [line for line in said if line.startswith(beginning)]
    return found[-1].removeprefix(beginning).strip() if found else ""
