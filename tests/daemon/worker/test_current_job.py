from redrived.processes import wire
from support.workers import Workshop


async def test_beats_and_progress_are_thinned_out_and_the_last_word_is_in_the_report(
    shop: Workshop,
) -> None:
    report = await shop.run("beat_often", times=10_000)

    assert report.progress == (10_000, 10_000, "counting")
    assert report.metrics == {"steps": 10_000, "kind": "test"}
    assert 1 <= len(shop.ear.beats) < 20
    assert (shop.ear.beats[0].job, shop.ear.beats[0].lease) == (report.job, report.lease)


async def test_once_waits_for_the_daemons_answer(shop: Workshop) -> None:
    claimed: set[str] = set()

    def answer(ask: wire.Ask) -> bool:
        is_first = ask.value not in claimed
        claimed.add(str(ask.value))
        return is_first

    shop.ear.answer = answer

    assert await shop.result("claim", key="mail") is True
    assert await shop.result("claim_later", key="mail") is False


async def test_a_question_that_cannot_be_answered_fails_in_the_handler(shop: Workshop) -> None:
    shop.ear.problem = "the store is full"

    report = await shop.run("claim", key="mail")

    assert report.outcome == "failed"
    assert report.failure is not None
    assert report.failure.message == "the store is full"


async def test_a_first_execution_goes_through_everything_without_asking(shop: Workshop) -> None:
    items = [str(n) for n in range(6_000)]

    assert await shop.result("go_through", items=items) == items
    assert shop.ear.asks == []
    assert shop.ear.marks == items


async def test_what_failed_in_the_middle_has_marked_what_came_before(shop: Workshop) -> None:
    report = await shop.run("go_through", items=["a", "b", "c", "d"], stop_at="c")

    assert report.outcome == "failed"
    assert shop.ear.marks == ["a", "b"]


async def test_a_later_execution_skips_what_is_marked_page_by_page(shop: Workshop) -> None:
    pages = {None: (["a"], "a"), "a": (["c"], None)}
    shop.ear.answer = lambda ask: pages[ask.value]  # type: ignore[index]

    report = await shop.run("go_through", execution=2, items=["a", "b", "c", "d"])

    assert bytes(report.result) == b'["b","d"]'
    assert shop.ear.marks == ["b", "d"]
