from pathlib import Path

import msgspec
import pytest

from redrived.processes import wire
from support.workers import Workshop, tasks_of_the_app


@pytest.mark.parametrize("task", ["echo", "echo_later"])
async def test_a_handler_gets_its_arguments_by_name_and_its_result_is_kept(
    shop: Workshop, task: str
) -> None:
    assert await shop.result(task, path="/a", n=[1, {"b": None}]) == {
        "path": "/a",
        "n": [1, {"b": None}],
    }


@pytest.mark.parametrize("task", ["facts", "facts_later"])
async def test_a_handler_can_ask_which_job_it_is(shop: Workshop, task: str) -> None:
    assert await shop.result(task) == [1, 1, 3, {}, None, None, None]


async def test_a_failure_tells_its_classes_its_message_and_the_handlers_own_frames(
    shop: Workshop,
) -> None:
    report = await shop.run("fail", message="no such page")

    failure = report.failure
    assert report.outcome == "failed"
    assert failure is not None
    assert failure.names == [
        "app_handlers.fail.<locals>.Failed",
        "LookupError",
        "Exception",
        "BaseException",
    ]
    assert failure.message == "no such page"
    assert failure.traceback is not None
    assert "app_handlers.py" in failure.traceback
    assert "runner.py" not in failure.traceback


async def test_an_async_handlers_traceback_begins_in_the_handler(shop: Workshop) -> None:
    failure = (await shop.run("fail_later", message="gone")).failure

    assert failure is not None
    assert failure.traceback is not None
    assert "asyncio" not in failure.traceback
    assert "app_handlers.py" in failure.traceback


async def test_messages_and_tracebacks_are_bounded(shop: Workshop) -> None:
    failure = (await shop.run("fail", message="x" * 100_000)).failure

    assert failure is not None
    assert len(failure.message) == 4096
    assert len(failure.traceback or "") < 17_000


async def test_what_a_handler_says_outright_is_told_with_its_details(shop: Workshop) -> None:
    permanent = await shop.run("say_outright", what="permanent")
    transient = await shop.run("say_outright", what="transient")
    snoozed = await shop.run("say_outright", what="snooze")

    assert permanent.outcome == "permanent"
    assert permanent.failure is not None
    assert permanent.failure.type == "broken"
    assert transient.outcome == "transient"
    assert transient.failure is not None
    assert transient.failure.retry_after == 90
    assert snoozed.outcome == "snoozed"
    assert snoozed.failure is not None
    assert snoozed.failure.until is not None
    assert snoozed.failure.until - snoozed.began == pytest.approx(3_600_000_000, abs=60_000_000)


async def test_sys_exit_and_a_keyboard_interrupt_end_the_job_not_the_worker(
    shop: Workshop,
) -> None:
    worker = shop.worker
    left = await shop.run("leave", code=3)
    interrupted = await shop.run("interrupt_keyboard")

    assert (left.outcome, interrupted.outcome) == ("failed", "failed")
    assert left.failure is not None
    assert left.failure.names[0] == "SystemExit"
    assert left.failure.message == "sys.exit(3)"
    assert await shop.result("echo", still="here") == {"still": "here"}
    assert shop.pool.workers == [worker]


@pytest.mark.parametrize(
    ("task", "args", "says"),
    [
        ("big", {"size": 64 * 1024}, "65538 bytes of JSON, more than 65536"),
        ("unfit", {}, "not JSON serializable"),
        ("not_a_number", {}, "JSON cannot hold"),
        ("nested", {"depth": 100}, "nested too deeply"),
        ("nested", {"depth": 100_000}, "JSON cannot hold"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_a_permanent_error(
    shop: Workshop, task: str, args: dict[str, int], says: str
) -> None:
    report = await shop.run(task, **args)

    assert report.outcome == "permanent"
    assert report.failure is not None
    assert report.failure.type == "invalid_result"
    assert says in report.failure.message


async def test_an_outcome_that_makes_no_sense_is_a_failure_that_says_so(shop: Workshop) -> None:
    report = await shop.run("say_outright", what="nonsense")

    assert report.outcome == "failed"
    assert report.failure is not None
    assert "not str" in report.failure.message
    assert 'retry_after="soon"' in (report.failure.traceback or "")  # the handler's own line


async def test_an_outcome_that_was_bent_later_fails_its_job_alone(shop: Workshop) -> None:
    report = await shop.run("say_outright", what="bent")

    assert report.outcome == "failed"
    assert report.failure is not None
    assert "'soon'" in report.failure.message


async def test_the_largest_allowed_result_passes(shop: Workshop) -> None:
    assert len(await shop.result("big", size=64 * 1024 - 2)) == 64 * 1024 - 2


async def test_many_large_results_are_told_in_several_frames(shop: Workshop) -> None:
    jobs = [shop.job("big", size=60_000) for _ in range(50)]

    reports = await shop.run_all(jobs)

    assert {len(bytes(report.result)) for report in reports} == {60_002}


async def test_text_that_is_no_unicode_loses_a_character_not_the_result(shop: Workshop) -> None:
    assert await shop.result("odd_text") == "a?b"


@pytest.mark.parametrize(
    ("task", "name", "says"),
    [
        ("unimportable", "ModuleNotFoundError", "no_such_module_anywhere"),
        ("missing", "AttributeError", "no_such_function"),
    ],
)
async def test_a_task_that_is_not_there_fails_its_jobs_and_harms_nobody_else(
    shop: Workshop, task: str, name: str, says: str
) -> None:
    report = await shop.run(task)

    assert report.outcome == "failed"
    assert report.failure is not None
    assert report.failure.names[0] == name
    assert says in report.failure.message
    assert await shop.result("echo", a=1) == {"a": 1}


async def test_a_job_whose_task_has_gone_to_another_pool_is_given_back(shop: Workshop) -> None:
    known = tasks_of_the_app()
    del known["echo_later"]
    shop.pool.define(known)
    job = shop.give("echo_later")
    await shop.ear.until(lambda: job in shop.ear.returned_jobs)

    assert job not in shop.ear.reports
    assert await shop.result("echo", a=1) == {"a": 1}


async def test_a_task_may_have_an_environment_and_a_folder_of_its_own(shop: Workshop) -> None:
    facts = {"own": wire.TaskFacts("app_handlers:env_of", env={"COLOUR": "red"}, cwd="/")}
    shop.pool.define({"env_of": wire.TaskFacts("app_handlers:env_of")} | facts)

    assert await shop.result("own", name="COLOUR") == ["red", "/"]
    assert await shop.result("env_of", name="COLOUR") == [None, str(shop.outputs.parent)]


@pytest.mark.parametrize("removed", [False, True])
async def test_every_job_begins_in_the_folder_of_its_task(
    shop: Workshop, tmp_path: Path, removed: bool
) -> None:
    (tmp_path / "elsewhere").mkdir()
    facts = wire.TaskFacts("app_handlers:env_of", env={"COLOUR": "red"})
    shop.pool.define(tasks_of_the_app() | {"own": facts})
    jobs = [
        shop.job("go_to", folder=str(tmp_path / "elsewhere"), removed=removed),
        shop.job("env_of", name="COLOUR"),
        shop.job("own", name="COLOUR"),
    ]

    reports = await shop.run_all(jobs)

    assert [report.outcome for report in reports] == ["done"] * 3
    found = [msgspec.json.decode(report.result) for report in reports[1:]]
    assert found == [[None, str(tmp_path)], ["red", str(tmp_path)]]


async def test_a_cancel_leaves_nothing_of_a_tasks_environment_behind(
    shop: Workshop, tmp_path: Path
) -> None:
    task, there, go = (
        "wait_where_the_environment_is_taken_back",
        tmp_path / "there",
        tmp_path / "go",
    )
    facts = wire.TaskFacts(f"app_handlers:{task}", env={"COLOUR": "red"})
    shop.pool.define(tasks_of_the_app() | {task: facts})
    job = shop.give(task, path=str(there), until=str(go))
    await shop.ear.until(there.exists)
    shop.worker.cancel(job, job + 1000)
    shop.worker.take_back()
    await shop.ear.until(lambda: shop.ear.returned)  # so the cancel has been heard
    go.touch()

    await shop.ear.report_of(job)
    assert (await shop.result("env_of", name="COLOUR"))[0] is None


async def test_a_task_is_held_to_its_limits_and_the_next_one_is_not(shop: Workshop) -> None:
    limits = {"memory": 4 << 30, "open_files": 100, "file_size": 1 << 20, "nice": 3}
    free = wire.TaskFacts("app_handlers:limits")
    held = wire.TaskFacts("app_handlers:limits", limits=limits)
    shop.pool.define({"free": free, "held": held})

    before, nice = await shop.result("free")
    assert await shop.result("held") == [[4 << 30, 100, 1 << 20], nice + 3]
    assert (await shop.result("free"))[0] == before


async def test_a_child_that_a_handler_forks_and_forgets_runs_no_jobs(shop: Workshop) -> None:
    jobs = [shop.job("fork_and_come_back"), *(shop.job("echo", n=n) for n in range(20))]

    await shop.run_all(jobs)

    assert sorted(shop.ear.order) == [job.id for job in jobs]


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("return", 0, ""),
        ("exit", 0, ""),
        ("exit 3", 3, ""),
        ("exit in words", 1, "no way\n"),
        ("fail", 1, "LookupError: in the child\n"),
    ],
)
async def test_a_child_that_a_handler_forks_ends_as_it_would_anywhere(
    shop: Workshop, how: str, code: int, said: str
) -> None:
    report = await shop.run("fork_and_wait", how=how)

    assert msgspec.json.decode(report.result) == code
    output = shop.output(report)
    assert "from the child" in output
    assert said in output


async def test_a_handler_that_closes_the_event_loop_fails_no_other(shop: Workshop) -> None:
    assert await shop.result("echo_later", n=1) == {"n": 1}
    assert (await shop.run("close_the_loop")).outcome == "done"
    assert await shop.result("echo_later", n=2) == {"n": 2}


async def test_an_async_handler_whose_task_exits_has_ended_with_it(
    shop: Workshop, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    report = await shop.run("leave_the_loop", path=str(ended))

    assert report.failure is not None
    assert (report.outcome, report.failure.message) == ("failed", "sys.exit(3)")
    assert ended.exists()


async def test_nothing_the_worker_needs_hides_a_module_of_the_application(
    shop: Workshop,
) -> None:
    found = await shop.result("environment")

    assert not any("redrived/worker" in entry for entry in found["path"])
    assert not {"main", "tasks", "hand", "report", "output"} & set(found["modules"])
    assert found["path"][0].endswith("tests/daemon/worker/app")
    assert {"REDRIVE_STORE", "REDRIVE_WORKER"} <= set(found["names"])
    assert not [name for name in found["names"] if name.startswith(("NOTIFY", "PYTEST"))]


async def test_a_report_of_a_silent_job_is_as_short_as_can_be(shop: Workshop) -> None:
    report = await shop.run("noop")

    assert (report.outcome, bytes(report.result), report.wrote) == ("done", b"null", False)
    assert report.metrics is None
    assert msgspec.json.encode(report.failure) == b"null"
