"""The benches run, and what they find stands in docs/performance.md. No number is judged."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.markdown import ROOT

BENCH = ROOT / "bench"
PAGE = ROOT / "docs" / "performance.md"


@pytest.mark.parametrize("name", ["batch", "store", "worker"])
def test_a_quick_run_measures_and_writes_nothing_down(name: str, tmp_path: Path) -> None:
    before = PAGE.read_text()
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py"), "--quick"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a quick run: nothing is written down" in done.stdout
    assert PAGE.read_text() == before


def test_every_bench_that_make_runs_has_a_section() -> None:
    listed = (ROOT / "Makefile").read_text().partition("BENCHES := ")[2].partition("\n\n")[0]
    for name in listed.replace("\\", "").split():
        assert (BENCH / f"{name}.py").exists(), name
        assert f"<!-- {name}: written by bench/{name}.py -->" in PAGE.read_text()


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with a page of its own."""
    spec = importlib.util.spec_from_file_location("report", BENCH / "report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "report", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    module.PAGE.write_text("# Page\n\nBefore.\n")
    return module


def found(report: ModuleType, name: str, number: float, *, is_quick: bool = False) -> None:
    made = report.Report(name, f"About {name}", "How.")
    made.add("drain", number, "jobs/s", goal=report.at_least(100), floor=report.at_least(50))
    made.write(argparse.Namespace(quick=is_quick))


def test_a_bench_writes_its_section_anew_and_leaves_the_others(report: ModuleType) -> None:
    found(report, "one", 10)
    found(report, "two", 60)
    report.PAGE.write_text(report.PAGE.read_text() + "After.\n")
    found(report, "one", 2_000)
    page = report.PAGE.read_text()
    assert page.startswith("# Page\n\nBefore.\n")
    assert page.endswith("After.\n")
    assert "| drain | 2,000 jobs/s | ≥ 100 | ≥ 50 | reached |" in page
    assert "| drain | 60 jobs/s | ≥ 100 | ≥ 50 | floor held |" in page
    assert "missed" not in page


def test_a_number_under_its_floor_is_told_as_missed(report: ModuleType) -> None:
    found(report, "one", 10)
    assert "| drain | 10 jobs/s | ≥ 100 | ≥ 50 | **missed** |" in report.PAGE.read_text()


def test_a_quick_run_is_not_written_down(report: ModuleType) -> None:
    found(report, "one", 10, is_quick=True)
    assert report.PAGE.read_text() == "# Page\n\nBefore.\n"
