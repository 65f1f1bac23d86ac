from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from support.http_side import Side, http_side

Samples = dict[tuple[str, tuple[str, ...]], float]


async def scrape(side: Side) -> Samples:
    text = (await side.get("/metrics")).text
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_jobs_attempts_and_durations_are_told(side: Side) -> None:
    [done] = await side.bench.enqueue("work")
    [dead] = await side.bench.enqueue("fail")
    await side.bench.ended(done)
    await side.bench.ended(dead)
    found = await scrape(side)
    assert found["redrive_jobs", ("default", "done", "work")] == 1
    assert found["redrive_jobs", ("dead", "default", "fail")] == 1
    assert found["redrive_attempts_total", ("done", "work")] == 1
    assert found["redrive_attempts_total", ("fail", "retry")] == 1
    assert found["redrive_attempts_total", ("dead", "fail")] == 1
    assert found["redrive_attempt_seconds_count", ("fail",)] == 2
    assert found["redrive_events_total", ("step_retry_exhausted",)] == 1
    assert [value for (name, _), value in found.items() if name == "redrive_dead_jobs"] == [1]
    assert found["redrive_slots", ()] == 4
    assert found["redrive_healthy", ()] == 1


async def test_the_oldest_that_could_run_is_told(side: Side) -> None:
    side.engine.dispatcher.close()
    await side.bench.enqueue("work")
    found = await scrape(side)
    assert found["redrive_queue_oldest_ready_seconds", ("default",)] >= 0
    assert found["redrive_draining", ()] == 1


async def test_a_pool_that_is_not_as_it_should_be_is_told(tmp_path: Path) -> None:
    async with http_side(tmp_path, '[tasks.dump]\npython = "json:dumps"') as side:
        pool = side.engine.python.pools["default"]
        for trouble, failed, told in (("", "", 0), ("no python", "", 1), ("", "no module", 1)):
            pool.trouble, pool.preload_failed = trouble, failed
            assert (await scrape(side))["redrive_pool_trouble", ("default",)] == told


async def test_names_and_units_are_as_prometheus_wants_them(side: Side) -> None:
    [id] = await side.bench.enqueue("work")
    await side.bench.ended(id)
    response = await side.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(response.text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.documentation
        assert re.fullmatch(r"(redrive|process)_[a-z_]+", family.name)
        assert not re.search(r"_(ms|millis|minutes|kb|mb|percent)$", family.name)
        for sample in family.samples:
            if sample.name.endswith("_bucket"):
                assert "le" in sample.labels
    for family in (f for f in families if f.type == "histogram"):
        for name in {tuple(s.labels.get("task", "") for s in family.samples)}:
            assert name is not None
        counts = [s.value for s in family.samples if s.name.endswith("_bucket")]
        per_series = [counts[i : i + 13] for i in range(0, len(counts), 13)]
        assert all(series == sorted(series) for series in per_series)
