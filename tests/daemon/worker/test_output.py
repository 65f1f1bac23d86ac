import os
from pathlib import Path

import pytest

from support.workers import Workshop


async def test_everything_an_attempt_writes_is_in_its_own_file(shop: Workshop) -> None:
    report = await shop.run("speak", execution=4)

    assert report.wrote
    assert shop.output(report, execution=4) == (
        "printed\nto stderr\nby os.write\nby a child\nand an unfinished line"
    )


async def test_each_attempt_in_a_hand_has_its_own_output_and_silent_ones_have_none(
    shop: Workshop,
) -> None:
    jobs = [
        shop.job("print_line", text="first"),
        shop.job("noop"),
        shop.job("print_line", text="third"),
    ]

    reports = await shop.run_all(jobs)

    assert [report.wrote for report in reports] == [True, False, True]
    assert shop.output(reports[0]) == "first\n"
    assert shop.output(reports[2]) == "third\n"


async def test_logging_ends_in_the_output_even_when_nobody_set_it_up(shop: Workshop) -> None:
    text = shop.output(await shop.run("log_something"))

    assert "INFO from the job" in text
    assert "from the app" in text


async def test_what_c_code_prints_is_with_the_attempt_that_called_it(shop: Workshop) -> None:
    first, _, third = await shop.run_all(
        [shop.job("print_from_c", text="one"), shop.job("noop"), shop.job("print_from_c", text="3")]
    )

    assert shop.output(first) == "one\n"
    assert shop.output(third) == "3\n"


async def test_output_can_be_followed_while_the_job_runs(shop: Workshop, tmp_path: Path) -> None:
    live = Path(shop.worker.process.output.path)
    shop.give("print_and_wait", text="soon", path=str(tmp_path / "go"))

    await shop.ear.until(lambda: live.read_text() == "soon\n")
    (tmp_path / "go").touch()


async def test_the_last_words_of_a_worker_that_died_stay_with_the_attempt(
    shop: Workshop,
) -> None:
    job = shop.give("die_loudly")

    await shop.ear.until(lambda: shop.ear.losses)
    loss = shop.ear.losses[0]
    assert loss.wrote
    assert (shop.outputs / "0" / f"{job}.1.out").read_text() == "last words\n"


async def test_a_folder_that_vanishes_costs_the_output_not_the_job(shop: Workshop) -> None:
    os.rename(shop.outputs, shop.outputs.with_name("moved away"))

    first = await shop.run("print_line", text="perhaps lost")
    second = await shop.run("print_line", text="kept again")

    assert first.outcome == "done"  # kept only if the worker looked for its file in between
    assert (second.outcome, second.wrote) == ("done", True)
    assert shop.output(second) == "kept again\n"


async def test_a_folder_that_cannot_be_made_costs_the_output_not_the_job(
    shop: Workshop,
) -> None:
    os.rename(shop.outputs, shop.outputs.with_name("moved away"))
    shop.outputs.write_text("a file where the folder was")

    assert (await shop.run("print_line", text="lost")).outcome == "done"
    assert (await shop.run("print_line", text="lost too")).outcome == "done"

    shop.outputs.unlink()
    await shop.run("noop")
    report = await shop.run("print_line", text="back")
    assert shop.output(report) == "back\n"


@pytest.mark.parametrize(
    "how",
    [
        "close",
        "close what is below",
        "close descriptors",
        "redirect descriptors",
        "open a file in its place",
        "replace",
        "wrap",
        "detach",
    ],
)
async def test_a_handler_that_spoils_its_output_spoils_nobody_elses(
    shop: Workshop, how: str
) -> None:
    spoiler = await shop.run("spoil_output", how=how)
    after = await shop.run("speak")

    assert (spoiler.outcome, after.outcome) == ("done", "done")
    assert shop.output(spoiler) == "before\n"
    assert shop.output(after) == (
        "printed\nto stderr\nby os.write\nby a child\nand an unfinished line"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
async def test_a_full_disk_costs_the_output_not_the_job(shop: Workshop) -> None:
    assert (await shop.run("print_to_a_full_disk")).outcome == "done"
