"""Whether the interpreters of the pools start, and find the functions their tasks name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from redrive.config import Config
from redrive.config.sections import Pool
from redrive.protocol.rows import Check

PATIENCE = 20.0  # seconds to import everything a pool needs

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
for name in asked["names"]:
    module, _, function = name.partition(":")
    found = importlib.import_module(module)
    for part in filter(None, function.split(".")):
        found = getattr(found, part)
print("%d.%d" % sys.version_info[:2])
"""


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
        ran = subprocess.run(
            [python, "-c", _IMPORT, asked],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = f"[pools.{name}] python must name an interpreter that starts"
        return Check(name=label, ok=False, text=f"{python} does not run: {error}", hint=hint)
    said = (ran.stdout if ran.returncode == 0 else ran.stderr).strip().splitlines()
    last = said[-1] if said else "it said nothing"
    if ran.returncode != 0:
        hint = f"[pools.{name}] path must name the folders of its modules; see also `python`"
        return Check(name=label, ok=False, text=f"{python}: {last}", hint=hint)
    return Check(name=label, ok=True, text=f"Python {last} finds all {len(names)} names")
