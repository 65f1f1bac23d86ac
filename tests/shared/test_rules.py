"""What kind of failure it was: the order of evidence, and the words people are given."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from redrive.builtin_rules import KINDS
from redrive.config.sections import ErrorRule
from redrive.errors import UsageProblem
from redrive.rules import Evidence, Rulebook, Said, compile_pattern

# (software, type, text), one per line that some program really prints.
SAMPLES = [
    (software, expected, text)
    for software, types in tomllib.loads(
        Path(__file__).with_name("error_texts.toml").read_text()
    ).items()
    for expected, texts in types.items()
    for text in texts
]
BUILTIN = Rulebook()
QUOTA = ErrorRule(match="quota exceeded", type="quota", category="transient")


def error_type(**evidence: Any) -> str:
    return BUILTIN.classify(Evidence(**evidence)).error_type


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        pytest.param(expected, text, id=f"{software}: {text[:60]}")
        for software, expected, text in SAMPLES
    ],
)
def test_a_known_error_text_gets_its_type(expected: str, text: str) -> None:
    found = BUILTIN.classify(Evidence(message=text))

    assert (found.error_type, found.category) == (expected, KINDS[expected].category)


def test_there_are_enough_samples_to_mean_something() -> None:
    assert len(SAMPLES) >= 150


@pytest.mark.parametrize(
    ("text", "message", "guidance"),
    [
        (
            "Timeout",
            "Processing timed out",
            "Will retry automatically. Large documents may take longer.",
        ),
        ("timed out", "Processing timed out", None),
        ("RATE LIMIT", "Service temporarily busy", "Will retry in a few seconds."),
        ("rate-limit", "Service temporarily busy", None),
        ("HTTP 429", "Service temporarily busy", None),
        ("Too Many Requests", "Service temporarily busy", None),
        (
            "service unavailable",
            "Processing service unavailable",
            "Will retry automatically.",
        ),
        ("503", "Processing service unavailable", None),
        ("connection refused", "Network connection error", "Will retry automatically."),
        ("connection_reset", "Network connection error", None),
        ("ConnectionError", "Network connection error", None),
        ("an odd thing", "An unexpected error occurred", ""),
        (
            "invalid file",
            "File appears to be invalid or corrupted",
            "Please re-upload the document.",
        ),
        ("file corrupted", "File appears to be invalid or corrupted", None),
        (
            "unsupported format",
            "File format not supported",
            "Supported formats: PDF, XLSX, DOCX, TXT",
        ),
        ("unsupported type", "File format not supported", None),
        (
            "permission denied",
            "Access denied",
            "Contact administrator if issue persists.",
        ),
        ("401", "Access denied", None),
        ("403", "Access denied", None),
        ("unauthorized", "Access denied", None),
        ("not found", "Document file not found", "Please re-upload the document."),
        ("404", "Document file not found", None),
        ("does not exist", "Document file not found", None),
    ],
)
def test_people_read_the_words_they_know(text: str, message: str, guidance: str | None) -> None:
    told = BUILTIN.classify_text(text)

    assert told["user_message"] == message
    assert guidance is None or told["guidance"] == guidance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deadlock", "database_lock"),
        ("lock timeout", "database_lock"),
        ("temporary", "transient_error"),
        ("transient", "transient_error"),
        ("validation error", "validation_error"),
        ("invalid data", "validation_error"),
        ("connection error: 404 page", "connection_error"),
    ],
)
def test_specific_goes_before_generic_and_transient_before_permanent(
    text: str, expected: str
) -> None:
    assert error_type(message=text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "GET http://127.0.0.1:503/orders/404: All connection attempts failed",
        "Max retries exceeded with url: /orders/404 (Caused by: Failed to resolve 'x')",
        "cannot reach 'HTTPS://example.org/permission-denied?status=401': no route to host",
    ],
)
def test_the_address_that_was_called_is_no_evidence(text: str) -> None:
    error = BUILTIN.classify(Evidence(message=text, exception=("httpx.NetworkError",)))

    assert (error.error_type, error.category) == ("connection_error", "transient")


def test_a_rule_of_the_config_may_speak_of_the_address() -> None:
    rule = ErrorRule(match="orders/404", type="lost_order", category="permanent")
    found = Rulebook([rule]).classify(Evidence(message="GET http://x/orders/404: no answer"))

    assert found.error_type == "lost_order"


def test_a_text_is_classified_with_everything_a_script_needs() -> None:
    assert BUILTIN.classify_text("Too many requests") == {
        "category": "transient",
        "error_type": "rate_limit",
        "message": "Too many requests",
        "user_message": "Service temporarily busy",
        "guidance": "Will retry in a few seconds.",
        "should_retry": True,
        "rule": "builtin pattern rate_limit",
    }


def test_an_unknown_error_is_worth_a_retry_and_a_permanent_one_is_not() -> None:
    assert BUILTIN.classify_text("what?")["should_retry"] is True
    assert BUILTIN.classify_text("file corrupt")["should_retry"] is False


def test_a_status_that_was_expected_is_not_what_went_wrong() -> None:
    message = "GET http://a/ answered 200 OK, expected 404 or 503"
    assert BUILTIN.classify(Evidence(message=message, status=200)).error_type == "unknown"
    assert BUILTIN.classify(Evidence(message=message)).error_type == "service_unavailable"


@pytest.mark.parametrize(
    ("status", "expected", "retried"),
    [
        (400, "validation_error", False),
        (401, "auth_error", False),
        (403, "auth_error", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "request_refused", False),
        (418, "request_refused", False),
        (425, "transient_error", True),
        (429, "rate_limit", True),
        (500, "server_error", True),
        (502, "service_unavailable", True),
        (503, "service_unavailable", True),
        (504, "timeout", True),
        (599, "server_error", True),
        (302, "unknown", True),
    ],
)
def test_an_http_status_says_whether_to_try_again(
    status: int, expected: str, retried: bool
) -> None:
    found = BUILTIN.classify(Evidence(status=status))

    assert (found.error_type, found.should_retry) == (expected, retried)


@pytest.mark.parametrize(
    ("exit_code", "category", "rule"),
    [
        (75, "transient", "exit 75 (EX_TEMPFAIL)"),
        (64, "permanent", "exit 64 (EX_USAGE)"),
        (65, "permanent", "exit 65 (EX_DATAERR)"),
        (66, "permanent", "exit 66 (EX_NOINPUT)"),
        (77, "permanent", "exit 77 (EX_NOPERM)"),
        (78, "permanent", "exit 78 (EX_CONFIG)"),
        (126, "permanent", "exit 126 (not executable)"),
        (127, "permanent", "exit 127 (no such program)"),
        (1, "unknown", "unknown"),
        (2, "unknown", "unknown"),
    ],
)
def test_an_exit_code_speaks_only_when_sysexits_or_the_shell_knows_it(
    exit_code: int, category: str, rule: str
) -> None:
    found = BUILTIN.classify(Evidence(exit_code=exit_code))

    assert (found.category, found.rule) == (category, rule)


@pytest.mark.parametrize(
    ("evidence", "error_type"),
    [
        ({"exit_code": 127, "message": "/bin/sh: 1: report: not found"}, "program_missing"),
        ({"exit_code": 127, "message": "cannot run report: there is no such"}, "program_missing"),
        ({"exit_code": 126, "message": "sh: 1: ./x: Permission denied"}, "program_unusable"),
        ({"message": "/bin/sh: 1: report: not found"}, "not_found"),
    ],
)
def test_a_program_that_never_ran_is_told_from_what_it_did_not_find(
    evidence: dict[str, Any], error_type: str
) -> None:
    found = BUILTIN.classify(Evidence(**evidence))
    assert found.error_type == error_type
    if error_type == "program_missing":
        assert found.user_message == "The program was not found"


def test_exit_1_leaves_the_word_to_the_output() -> None:
    assert error_type(exit_code=1, message="connection refused") == "connection_error"


def test_a_signal_is_told_apart_from_running_out_of_memory() -> None:
    assert error_type(signal="SIGKILL") == "killed"
    assert error_type(signal="SIGKILL", oom=True) == "out_of_memory"
    assert error_type(signal="SIGSEGV") == "crash"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("ConnectionRefusedError", "ConnectionError", "OSError"), "connection_error"),
        (("requests.exceptions.Timeout", "requests.exceptions.RequestException"), "timeout"),
        (("shop.errors.NoAmount", "ValueError", "Exception"), "validation_error"),
        (("json.decoder.JSONDecodeError", "ValueError"), "validation_error"),
        (("psycopg.OperationalError", "psycopg.DatabaseError"), "connection_error"),
        (("shop.errors.Odd", "Exception"), "unknown"),
    ],
)
def test_an_exception_is_known_by_its_class_or_a_base_class(
    names: tuple[str, ...], expected: str
) -> None:
    assert error_type(exception=names) == expected


@pytest.mark.parametrize("kind", ["stalled", "lost", "timeout"])
def test_what_the_supervisor_saw_itself_is_transient(kind: Any) -> None:
    found = BUILTIN.classify(Evidence(kind=kind, message="file corrupt"))

    assert (found.error_type, found.category, found.rule) == (kind, "transient", kind)


def test_a_configured_rule_comes_before_the_supervisors_verdict() -> None:
    book = Rulebook([ErrorRule(task="import", type="huge", category="permanent")])

    assert book.classify(Evidence(kind="timeout", task="import")).error_type == "huge"
    assert book.classify(Evidence(kind="timeout", task="other")).error_type == "timeout"


# Each piece of evidence alone points to another type; taking them away one by one shows
# which of those left is heard first.
LAYERS: list[tuple[dict[str, Any], str]] = [
    ({"said": Said(category="permanent", type="outright")}, "outright"),
    ({"status": 429}, "rate_limit"),
    ({"exit_code": 65}, "validation_error"),
    ({"signal": "SIGTERM"}, "killed"),
    ({"message": "connection refused"}, "connection_error"),
    ({"exception": ("FileNotFoundError", "OSError")}, "not_found"),
    ({}, "unknown"),
]


@pytest.mark.parametrize("depth", range(len(LAYERS)))
def test_evidence_is_heard_in_its_order(depth: int) -> None:
    evidence = {name: value for layer, _ in LAYERS[depth:] for name, value in layer.items()}

    assert error_type(**evidence) == LAYERS[depth][1]


def test_a_configured_rule_comes_before_everything() -> None:
    everything = {name: value for layer, _ in LAYERS for name, value in layer.items()}
    everything["message"] = "Quota exceeded: connection refused"
    found = Rulebook([QUOTA]).classify(Evidence(**everything))

    assert (found.error_type, found.rule) == ("quota", 'errors[0] match "quota exceeded"')


def test_the_first_configured_rule_that_fits_decides() -> None:
    other = ErrorRule(match="exceeded", type="other", category="permanent")

    assert Rulebook([QUOTA, other]).classify_text("quota exceeded")["error_type"] == "quota"
    assert Rulebook([other, QUOTA]).classify_text("quota exceeded")["error_type"] == "other"
    assert Rulebook([QUOTA, other]).classify_text("limit exceeded")["rule"] == (
        'errors[1] match "exceeded"'
    )


@pytest.mark.parametrize(
    ("condition", "fits", "misses"),
    [
        ({"exit_code": [3, 4]}, {"exit_code": 4}, {"exit_code": 5}),
        ({"signal": "TERM"}, {"signal": "SIGTERM"}, {"signal": "SIGKILL"}),
        ({"status": "5xx"}, {"status": 507}, {"status": 404}),
        ({"status": [409, "5XX"]}, {"status": 409}, {"status": None}),
        ({"task": ["a", "b"]}, {"task": "b"}, {"task": "c"}),
        ({"exception": "OSError"}, {"exception": ("PermissionError", "OSError")}, {}),
        ({"exception": "Timeout"}, {"exception": ("requests.Timeout",)}, {"exception": ("T",)}),
        ({"exception": "requests.Timeout"}, {"exception": ("requests.Timeout",)}, {}),
        (
            {"match": "full", "task": "a"},
            {"message": "disk FULL", "task": "a"},
            {"message": "full"},
        ),
    ],
)
def test_a_configured_rule_fits_when_all_it_names_fits(
    condition: dict[str, Any], fits: dict[str, Any], misses: dict[str, Any]
) -> None:
    rule = ErrorRule(**condition, type="mine", category="permanent")
    book = Rulebook([rule])

    assert book.classify(Evidence(**fits)).error_type == "mine"
    assert book.classify(Evidence(**misses)).error_type != "mine"


def test_a_rule_is_named_by_all_its_conditions() -> None:
    rule = ErrorRule(status=[503, "504"], task="a", type="x", category="transient")

    found = Rulebook([QUOTA, rule]).classify(Evidence(status=503, task="a"))

    assert found.rule == 'errors[1] status 503 or "504", task "a"'


def test_a_configured_rule_brings_its_own_words_or_gets_fitting_ones() -> None:
    def told(**rule: Any) -> tuple[str, str]:
        book = Rulebook([ErrorRule(match="x", **rule)])
        found = book.classify(Evidence(message="x"))
        return found.user_message, found.guidance

    own = told(type="quota", category="transient", message="Daily quota used up", guidance="Wait.")
    assert own == ("Daily quota used up", "Wait.")
    assert told(type="over_quota", category="permanent") == ("Over quota", "")
    assert told(type="over_quota", category="transient")[1] == "Will retry automatically."
    assert told(type="auth_error", category="permanent")[0] == "Access denied"
    assert told(type="timeout", category="permanent") == ("Timeout", "")


def test_what_the_handler_says_keeps_the_type_of_agreeing_evidence() -> None:
    def said(category: Any, message: str) -> str:
        word = Said(category=category)
        return BUILTIN.classify(Evidence(said=word, message=message)).error_type

    assert said("permanent", "file corrupt") == "invalid_file"
    assert said("permanent", "rate limit") == "permanent_error"
    assert said("transient", "rate limit") == "rate_limit"
    assert said("transient", "file corrupt") == "transient_error"


@pytest.mark.parametrize("text", ["(?=x)", r"(a)\1", "a{1001}", "(", "[z-a]"])
def test_a_pattern_that_re2_refuses_is_refused_with_its_reason(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"does not compile: .+; RE2 syntax has no look-around"):
        compile_pattern(text)


def test_a_pattern_has_a_length_limit() -> None:
    compile_pattern("x" * 512)
    with pytest.raises(UsageProblem, match="is 513 characters long"):
        compile_pattern("x" * 513)


def test_a_pattern_that_would_backtrack_for_ever_is_harmless() -> None:
    assert not compile_pattern("(a+)+$").found_in("a" * 60_000 + "b")


def test_only_the_end_of_a_long_text_is_searched() -> None:
    pattern = compile_pattern("needle")

    assert pattern.found_in("x" * 100_000 + "needle")
    assert not pattern.found_in("needle" + "x" * 100_000)


def test_text_that_is_not_unicode_can_be_searched() -> None:
    assert compile_pattern("après").found_in("APRÈS \udcff")
