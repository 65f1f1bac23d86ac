"""Every kind of mistake in a config, and the exact words it is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.refused import problems

DURATION = 'a duration such as "30s", "15m", "1h30m" or a number of seconds'
NAME = "a name of letters, digits and _ - . : (at most 100)"
DATE = "a date with its time, such as 2026-12-01T00:00:00Z, from 1970 to 2199"
ACTIONS = "expected exactly one of python, command, http"
RULE = 'type = "x"\ncategory = "transient"\n'
TASK = '[tasks.t]\ncommand = ["x"]\n'
STEPS = TASK + "[pipelines.p]\nsteps = [\n"
SCHEDULE = TASK + '[schedules.s]\ntask = "t"\n'

MISTAKES = [
    # Keys and types
    ("[daemon]\nconcurency = 4", '2: daemon.concurency: unknown key, did you mean "concurrency"?'),
    ("[deamon]", '1: deamon: unknown key, did you mean "daemon"?'),
    (
        "[retry.manual]\nzzz = 1",
        '2: retry.manual.zzz: unknown key, expected one of "cooldown", "max"',
    ),
    ("daemon = 3", "1: daemon: got 3, expected a table"),
    ("tasks = [1]", "1: tasks: got a list, expected a table"),
    ("[tasks]\nt = 5", "2: tasks.t: got 5, expected a table"),
    ("[http]", '1: http: "listen" is missing, expected a text'),
    (
        "[console]\nprotected = 1",
        "2: console.protected: got 1, expected true or false",
    ),
    # Numbers
    (
        '[daemon]\nconcurrency = "many"',
        '2: daemon.concurrency: got "many", expected a whole number, at least 1',
    ),
    (
        "[daemon]\nconcurrency = 0",
        "2: daemon.concurrency: got 0, expected a whole number, at least 1",
    ),
    (
        "[daemon]\nconcurrency = true",
        "2: daemon.concurrency: got true, expected a whole number, at least 1",
    ),
    (
        f"[daemon]\nconcurrency = {10**40}",
        "2: daemon.concurrency: got a number of more than 20 digits, expected at most 2147483647",
    ),
    (
        f"[daemon]\nconcurrency = {'9' * 5000}",
        "2: a number has too many digits, expected at most 19",
    ),
    (
        TASK + "limits = { nice = 30 }",
        "3: tasks.t.limits.nice: got 30, expected a whole number, at least -20, at most 19",
    ),
    (
        "[retry.slow]\njitter = nan",
        "2: retry.slow.jitter: got nan, expected a number, at least 0, at most 1",
    ),
    # Durations, sizes, rates, names, texts
    (
        '[daemon]\nshutdown_grace = "5 parsecs"',
        f'2: daemon.shutdown_grace: got "5 parsecs", expected {DURATION}',
    ),
    ("[daemon]\nshutdown_grace = -1", f"2: daemon.shutdown_grace: got -1, expected {DURATION}"),
    ("[daemon]\nshutdown_grace = nan", f"2: daemon.shutdown_grace: got nan, expected {DURATION}"),
    ("[daemon]\nshutdown_grace = inf", f"2: daemon.shutdown_grace: got inf, expected {DURATION}"),
    (
        '[daemon]\nshutdown_grace = "200000d"',
        '2: daemon.shutdown_grace: got "200000d", expected at most 100 years',
    ),
    (TASK + "timeout = 0", "3: tasks.t.timeout: got 0, expected a duration above zero"),
    (
        '[store]\nkeep = { done = "never" }',
        f'2: store.keep.done: got "never", expected {DURATION}',
    ),
    (
        TASK + 'limits = { memory = "lots" }',
        ('3: tasks.t.limits.memory: got "lots", '
        'expected a size such as "64M", "1G" or a number of bytes'),
    ),
    (
        '[queues.bulk]\nrate = "100 a minute"',
        ('2: queues.bulk.rate: got "100 a minute", '
        'expected a rate such as "5/s", "100/min" or "1000/h"'),
    ),
    ('[queues."two words"]', f'1: queues."two words": got "two words", expected {NAME}'),
    ('[daemon]\nstate_dir = ""', '2: daemon.state_dir: got "", expected a path'),
    (
        '[console]\nenvironment = "a\\u0000b"',
        '2: console.environment: got "a\\u0000b", expected no NUL character',
    ),
    (
        TASK + 'env = { "A=B" = "c" }',
        '3: tasks.t.env."A=B": got "A=B", expected the name of a variable',
    ),
    (
        '[daemon]\nlog_level = "warn"',
        ('2: daemon.log_level: got "warn", '
        'expected one of "debug", "error", "info", "warning", did you mean "warning"?'),
    ),
    # Where things are
    (
        '[store]\nurl = "postgres://me:secret@host/db"',
        ("2: store.url: no database we know, "
        "expected sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"),
    ),
    (
        '[store]\nurl = "sqlite:///:memory:"',
        ("2: store.url: no database we know, "
        "expected sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"),
    ),
    (
        '[bus]\nevents = "tcp://0.0.0.0:7000"',
        '2: bus.events: tcp is open to the network, expected `curve = "keys/"` beside it',
    ),
    (
        '[bus]\nevents = "/run/x"',
        '2: bus.events: got "/run/x", expected ipc://PATH or tcp://HOST:PORT',
    ),
    (
        '[http]\nlisten = "8383"',
        '2: http.listen: got "8383", expected HOST:PORT such as 127.0.0.1:8383',
    ),
    (
        '[http]\nlisten = "0.0.0.0:8383"',
        ('2: http.listen: "0.0.0.0:8383" can be reached by others, '
        "expected `token_file` beside it"),
    ),
    ('[http]\nlisten = ""', '2: http.listen: got "", expected HOST:PORT such as 127.0.0.1:8383'),
    ('[console]\ncolour = "blu"', '2: console.colour: got "blu", did you mean "blue"?'),
    # What a kind of task cannot have
    (
        '[tasks.t]\nhttp = { url = "http://x" }\n[tasks.t.limits]\noutput = "1M"',
        ("4: tasks.t.limits.output: an HTTP call has no process, "
        "expected no limits; `http.max_response` bounds it"),
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x" }\ncwd = "."',
        "3: tasks.t.cwd: an HTTP call has no process, expected it left out",
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x" }\nenv = { A = "b" }',
        "3: tasks.t.env: an HTTP call has no process, expected it left out",
    ),
    # Queues and policies
    (
        "[queues.a]\nreserved = 5\n[queues.b]\nreserved = 3",
        ("4: queues.b.reserved: 8 slots are reserved in all, "
        "expected fewer than daemon.concurrency, which is 8"),
    ),
    (
        '[retry.slow]\ndelays = ["1s", "soon"]',
        f'2: retry.slow.delays[1]: got "soon", expected {DURATION}',
    ),
    (
        '[retry.slow]\ndelays = ["1s"]\nbackoff = {}',
        "2: retry.slow.delays: got delays and backoff, expected only one of them",
    ),
    ("[retry.slow]\ndelays = []", "2: retry.slow.delays: got no delay, expected at least one"),
    (
        '[retry.slow]\nbackoff = { first = "1h" }',
        "2: retry.slow.backoff.cap: got 10m, expected at least `first`, 1h",
    ),
    (
        "[retry.manual]\ncooldwn = 60",
        ('2: retry.manual.cooldwn: unknown key, expected one of "cooldown", "max", '
        'did you mean "cooldown"?'),
    ),
    # Error rules
    (
        "[[errors]]\n" + RULE,
        ("1: errors[0]: matches nothing in particular, "
        "expected at least one of exception, match, exit_code, signal, status, task"),
    ),
    ('[[errors]]\nmatch = "a"\ncategory = "unknown"', f'1: errors[0]: "type" is missing, expected {NAME}'),
    (
        '[[errors]]\nmatch = "a"\ntype = "x"\ncategory = "transiet"',
        ('4: errors[0].category: got "transiet", '
        'expected one of "permanent", "transient", "unknown", did you mean "transient"?'),
    ),
    (
        '[[errors]]\nsignal = "SIGKIL"\n' + RULE,
        '2: errors[0].signal: unknown signal "SIGKIL", did you mean "SIGKILL"?',
    ),
    (
        '[[errors]]\nstatus = [503, "5x"]\n' + RULE,
        '2: errors[0].status[1]: got "5x", expected an HTTP status such as 503 or "5xx"',
    ),
    (
        '[[errors]]\ntask = ["t"]\n' + RULE,
        '2: errors[0].task[0]: unknown task "t", but none is defined',
    ),
    # Tasks
    ("[tasks.t]", f"1: tasks.t: got none, {ACTIONS}"),
    (
        '[tasks.t]\npython = "m:f"\ncommand = ["x"]',
        f"1: tasks.t: got python and command, {ACTIONS}",
    ),
    (
        '[tasks.t]\npython = "m.f"',
        '2: tasks.t.python: got "m.f", expected "package.module:function"',
    ),
    ("[tasks.t]\ncommand = []", "2: tasks.t.command: names no program, expected one"),
    (
        "[tasks.t]\ncommand = 5",
        "2: tasks.t.command: got 5, expected a text, or a list, each item a Jinja2 template",
    ),
    (
        '[tasks.t]\nhttp = { url = "" }',
        '2: tasks.t.http.url: got "", expected an http:// or https:// address',
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x", json = {}, body = "b" }',
        "2: tasks.t.http.body: got json and body, expected only one of them",
    ),
    (
        '[tasks.t]\nhttp = { url = "ftp://x" }',
        '2: tasks.t.http.url: got "ftp://x", expected an http:// or https:// address',
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x", json = { a = inf } }',
        "2: tasks.t.http.json: got inf, expected values that JSON can hold",
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x", json = [2026-01-01] }',
        "2: tasks.t.http.json: got 2026-01-01, expected values that JSON can hold",
    ),
    (
        TASK + 'queue = "blk"\n[queues.bulk]',
        ('3: tasks.t.queue: unknown queue "blk", '
        'expected one of "bulk", "default", did you mean "bulk"?'),
    ),
    (TASK + 'pool = "big"', '3: tasks.t.pool: unknown pool "big", expected "default"'),
    (
        TASK + 'retry = "defalt"',
        ('3: tasks.t.retry: unknown retry policy "defalt", '
        'did you mean "default"?'),
    ),
    (
        TASK + 'retry = "manual"\n[retry.manual]',
        '3: tasks.t.retry: unknown retry policy "manual", expected "default"',
    ),
    (
        TASK + 'heartbeat = { from = "output", every = "20s", stalled_after = "1m" }',
        "3: tasks.t.heartbeat.stalled_after: got 1m, expected at least 4 times `every`, 1m20s",
    ),
    (
        TASK + 'heartbeat = { stalled_after = "1m" }',
        '3: tasks.t.heartbeat: "from" is missing, expected "notify", "output" or "process"',
    ),
    (
        TASK + 'heartbeat = { from = "job" }',
        ("3: tasks.t.heartbeat.from: only Python tasks have a job to beat, "
        'expected "notify", "output" or "process"'),
    ),
    (
        '[tasks.t]\nhttp = { url = "http://x" }\nheartbeat = { from = "output" }',
        '3: tasks.t.heartbeat.from: an HTTP call cannot beat, got "output", expected "process"',
    ),
    # Pipelines
    ("[pipelines.p]\nsteps = []", "1: pipelines.p: got no step, expected at least one"),
    (
        '[pipelines.p]\nsteps = [{ name = "a", task = "t" }]',
        '2: pipelines.p.steps[0].task: unknown task "t", but none is defined',
    ),
    (
        STEPS + '{ name = "a", task = "t" },\n{ name = "a", task = "t" }]',
        '6: pipelines.p.steps[1].name: "a" is the name of steps[0], expected another',
    ),
    (
        STEPS + '{ name = "a", task = "t", needs = ["aa"] }]',
        ('5: pipelines.p.steps[0].needs[0]: unknown step "aa", '
        'did you mean "a"?'),
    ),
    (
        STEPS + '{ name = "a", task = "t", needs = ["b"] },\n{ name = "b", task = "t" }]',
        "5: pipelines.p.steps[0]: the steps wait for each other, a -> b -> a, expected no circle",
    ),
    (
        STEPS + '{ name = "a", task = "t", needs = ["a"] }]',
        "5: pipelines.p.steps[0]: the steps wait for each other, a -> a, expected no circle",
    ),
    (
        STEPS + '{ name = "a", task = "t", clear = "u" }]',
        '5: pipelines.p.steps[0].clear: unknown task "u", expected "t"',
    ),
    # What conditions and templates speak of
    (
        STEPS + '{ name = "a", task = "t", args = { x = "{{ steps.b.result }}" } },\n'
        '{ name = "b", task = "t" }]',
        ('5: pipelines.p.steps[0].args.x: step "b" need not be over by then, '
        "expected none, no step comes before this one"),
    ),
    (
        STEPS + '{ name = "a", task = "t", when = "steps.a.result" }]',
        ('5: pipelines.p.steps[0].when: step "a" need not be over by then, '
        "expected none, no step comes before this one"),
    ),
    (
        STEPS + '{ name = "a", task = "t" },\n{ name = "b", task = "t" },\n'
        '{ name = "c", task = "t", needs = ["a"], when = "steps[\'b\'].result" }]',
        '7: pipelines.p.steps[2].when: step "b" need not be over by then, expected "a"',
    ),
    (
        '[retry.slow]\nstop_when = "status_cod == 501"',
        '2: retry.slow.stop_when: unknown name "status_cod", did you mean "status_code"?',
    ),
    (
        TASK + 'retry = { retry_when = "attemps < 3" }',
        '3: tasks.t.retry.retry_when: unknown name "attemps", did you mean "attempt"?',
    ),
    (
        '[tasks.t]\ncommand = ["x", "{{ arg.a }}"]',
        '2: tasks.t.command[1]: unknown name "arg", did you mean "args"?',
    ),
    (
        TASK + 'concurrency_key = "{{ task }}"',
        '3: tasks.t.concurrency_key: unknown name "task", expected "args"',
    ),
    (
        '[tasks.t.http]\nurl = "http://{{ args.host }}"\njson = { a = ["{{ jbo }}"] }',
        '3: tasks.t.http.json.a[0]: unknown name "jbo", did you mean "job"?',
    ),
    (
        '[tasks.t.http]\nurl = "http://x"\n[tasks.t.http.headers]\nA = "{{ aargs }}"',
        '4: tasks.t.http.headers.A: unknown name "aargs", did you mean "args"?',
    ),
    (
        (
            STEPS + '{ name = "a", task = "t", retry = { stop_when = "eror == 1" } } ]'
        ),
        '5: pipelines.p.steps[0].retry.stop_when: unknown name "eror", did you mean "error"?',
    ),
    (
        (
            STEPS + '{ name = "a", task = "t" } ]\n'
            '[schedules.s]\npipeline = "p"\nevery = "1h"\nbatch = "{{ dat }}"'
        ),
        (
            '9: schedules.s.batch: unknown name "dat", '
            'expected one of "date", "schedule", "slot", did you mean "date"?'
        ),
    ),
    (
        '[[hooks]]\non = ["dead"]\nhttp = { url = "http://x/{{ evnt.type }}" }',
        ('3: hooks[0].http.url: unknown name "evnt", expected one of "environment", "event", '
        '"job", "missed", "node", "on", did you mean "event"?'),
    ),
    # Schedules and hooks
    (
        '[schedules.s]\ncron = "* * * * *"',
        "1: schedules.s: got none, expected exactly one of task, pipeline",
    ),
    (
        SCHEDULE + 'cron = "* * * * *"\nevery = "1h"',
        "3: schedules.s: got cron and every, expected exactly one of cron, every, at",
    ),
    (
        (
            STEPS + '{ name = "a", task = "t" } ]\n'
            '[schedules.s]\npipeline = "p"\nevery = "1h"\nqueue = "default"'
        ),
        (
            "9: schedules.s.queue: the steps of a pipeline name their queues, "
            "expected it only beside `task`"
        ),
    ),
    (
        SCHEDULE + 'every = "1h"\nbatch = "b"',
        "6: schedules.s.batch: only runs belong to a batch, expected it only beside `pipeline`",
    ),
    (SCHEDULE + "every = 0", "5: schedules.s.every: got 0, expected a duration above zero"),
    (
        SCHEDULE + "at = 9999-12-31T23:59:59-23:00",
        f"5: schedules.s.at: got 9999-12-31T23:59:59-23:00, expected {DATE}",
    ),
    (SCHEDULE + 'at = "soon"', f'5: schedules.s.at: got "soon", expected {DATE}'),
    (
        SCHEDULE + 'every = "1h"\ntimezone = "Europe/Berlim"',
        ('6: schedules.s.timezone: unknown time zone "Europe/Berlim", '
        'did you mean "Europe/Berlin"?'),
    ),
    (
        STEPS.replace(".p]", ".report]") + '{ name = "a", task = "t" }]\n'
        '[schedules.s]\npipeline = "repport"\nevery = "1h"',
        '7: schedules.s.pipeline: unknown pipeline "repport", did you mean "report"?',
    ),
    (
        '[[hooks]]\non = ["died"]\ncommand = ["x"]',
        '2: hooks[0].on[0]: unknown type of event "died", did you mean "dead"?',
    ),
    (
        '[[hooks]]\non = []\ncommand = ["x"]',
        "2: hooks[0].on: got nothing, expected at least one type of event",
    ),
    (
        '[[hooks]]\non = ["dead"]',
        "1: hooks[0]: got none, expected exactly one of command, http",
    ),
    # The environment
    (
        '[daemon]\nname = "${NOPE}"',
        "2: daemon.name: the variable NOPE is not set, expected a value or ${NOPE:-default}",
    ),
    (
        '[daemon]\nname = "${no pe}"',
        '2: daemon.name: got a "${" that names no variable, expected "$${" if it is meant so',
    ),
    (
        '[daemon]\nshutdown_grace = "${TOKEN}"',
        f'2: daemon.shutdown_grace: got "[redacted]", expected {DURATION}',
    ),
    # TOML itself
    ("a = 1\na = 2", "2: a: written again, expected it only once; it is already on line 1"),
    (
        "[daemon]\n[store]\n[daemon]",
        "3: daemon: written again, expected it only once; it is already on line 1",
    ),
    ("a = 1\nb = = 2", "2: not TOML: invalid value at column 5"),
    ("a = '''\n\nx", "3: not TOML: expected \"'''\" at the end of the file"),
    ("a = 1\nb = " + "[" * 1000, "2: nested too deeply, expected no more than 64 levels"),
    (
        "b" + ".b" * 100_000 + " = 1",
        "1: nested too deeply, expected no more than 64 levels",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_a_mistake_is_named_with_its_place_and_what_was_expected(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "config.toml"
    assert [str(problem) for problem in problems(path, text)] == [f"{path}:{said}"]


def test_time_zones_to_choose_from_are_told_in_order(tmp_path: Path) -> None:
    text = SCHEDULE + 'every = "1h"\ntimezone = "Mars/Olympus"'
    (problem,) = problems(tmp_path / "config.toml", text)
    assert 'expected one of "Africa/Abidjan", "Africa/Accra", ' in str(problem)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[[errors]]\nmatch = "(a"\n' + RULE, "2: errors[0].match: "),
        ('[retry.slow]\n\nstop_when = "exit_code =="', "3: retry.slow.stop_when: "),
        ('[tasks.t]\ncommand = ["echo", "{{ args. }}"]', "2: tasks.t.command[1]: "),
        (STEPS + '{ name = "a", task = "t", args = { b = ["{% x %}"] } }]', "5: pipelines.p.steps[0].args.b: "),
        (SCHEDULE + 'cron = "61 * * * *"', "5: schedules.s.cron: "),
    ],
)  # fmt: skip
def test_what_another_language_refuses_is_refused_in_its_own_words_and_at_its_place(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "config.toml"
    (problem,) = problems(path, text)
    assert str(problem).startswith(f"{path}:{place}")
    assert len(problem.text) > len("expected ")
