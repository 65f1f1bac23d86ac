from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from redrive.policy import RetryPolicy
from redrive.protocol import commands, queries, rehearsals
from redrive.protocol.commands import Done
from redrive.protocol.envelope import Refusal, Request
from redrive.protocol.queries import FateReply
from redrive.protocol.rehearsals import PolicyReply
from redrive.protocol.rows import Check, PipelineRow, RuleChange
from support.peer import Peer

from .conftest import Redrive

DONE: list[tuple[tuple[object, ...], Request]] = [
    (("pause", "bulk", "--why", "x"), commands.PauseIt(name="bulk", why="x")),
    (("pause", "redrive:3"), commands.ControlRedrive(redrive=3, verb="pause")),
    (("resume", "task:parse"), commands.ResumeIt(name="task:parse")),
    (("resume", "redrive:3"), commands.ControlRedrive(redrive=3, verb="resume")),
    (("trigger", "nightly"), commands.Trigger(schedule="nightly")),
    (("drain",), commands.Drain()),
    (("drain", "--node", "w2", "--no-stop"), commands.Drain(node="w2", stop=False)),
    (("undo", 3), commands.Undo(redrive=3)),
    (("backup", "/var/b.db"), commands.Backup(path="/var/b.db")),
]


@pytest.mark.parametrize(("arguments", "request_"), DONE)
def test_what_is_asked_is_sent_and_its_answer_printed(
    peer: Peer, redrive: Redrive, arguments: tuple[object, ...], request_: Request
) -> None:
    peer.replies[type(request_).__name__] = Done(text="it is done", data={"count": 1})
    assert redrive(*arguments).out == "it is done\n"
    assert redrive(*arguments, "--json").object == {"text": "it is done", "count": 1}
    assert peer.asked_for(type(request_).__name__) == [request_] * 2


def test_a_playbook_is_sent_as_its_text(peer: Peer, redrive: Redrive, tmp_path: Path) -> None:
    peer.replies["AddPipeline"] = Done(text="ingest version 1")
    file = tmp_path / "playbook.yaml"
    file.write_text("workflow: []\n")
    assert redrive("pipeline", "add", file).code == 0
    assert peer.asked_for("AddPipeline") == [
        commands.AddPipeline(source="workflow: []\n", file=str(file))
    ]


def test_a_playbook_that_is_no_text_is_told_as_that(
    peer: Peer, redrive: Redrive, tmp_path: Path
) -> None:
    file = tmp_path / "playbook.yaml"
    file.write_bytes(b"\xff\xfe")
    said = redrive("pipeline", "add", file)
    assert (said.code, peer.asked) == (2, [])
    assert f"{file} is no UTF-8 text" in said.err


def test_a_reload_says_what_changed(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Reload"] = commands.ReloadReply(
        changed=True, added=["tasks.x"], altered=["store.keep"], removed=[], needs_restart=[]
    )
    said = redrive("reload", "--dry-run")
    assert (said.code, said.out.startswith("a reload would change:")) == (0, True)
    assert "tasks.x" in said.out
    assert redrive("reload", "--json").object["added"] == ["tasks.x"]


def test_a_rehearsal_of_a_reload_that_would_be_refused_says_so(
    peer: Peer, redrive: Redrive
) -> None:
    peer.replies["Reload"] = commands.ReloadReply(
        changed=True, added=[], altered=["store.url"], removed=[], needs_restart=["store.url"]
    )
    said = redrive("reload", "--dry-run")
    assert (said.code, said.out.startswith("a reload would be refused:")) == (78, True)
    assert "needs a restart  store.url" in said.out
    assert redrive("reload", "--dry-run", "--json").code == 78


def test_a_refused_reload_exits_with_78(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Reload"] = Refusal(code="config", message="config.toml:3: x: no", exit_code=78)
    said = redrive("reload")
    assert (said.code, said.err) == (78, "redrive: config.toml:3: x: no\n")


def test_doctor_finds_the_daemon_away(redrive: Redrive) -> None:
    said = redrive("doctor", "--json")
    assert said.code == 1
    found = {line["name"]: line["ok"] for line in said.lines}
    assert (found["config"], found["daemon"]) == (True, False)


def test_doctor_passes_on_what_the_daemon_found(peer: Peer, redrive: Redrive) -> None:
    check = Check(name="disk", ok=False, text="3% free", hint="make room")
    peer.replies["Doctor"] = queries.DoctorReply(checks=[check])
    said = redrive("doctor")
    assert said.code == 1
    assert "BAD  disk: 3% free\n       make room" in said.out
    assert "you may change things, as uid 1000" in said.out


def test_classify_needs_no_daemon_and_knows_the_configs_rules(
    redrive: Redrive, folder: Path
) -> None:
    config = folder / "config.toml"
    config.write_text(
        config.read_text()
        + '[[errors]]\nmatch = "quota"\ntype = "quota"\ncategory = "transient"\n'
        + 'message = "Quota used up"\nguidance = "Wait."\n'
    )
    shown = redrive("classify", "daily QUOTA exceeded", "--json").object
    assert shown == {
        "category": "transient",
        "error_type": "quota",
        "message": "daily QUOTA exceeded",
        "user_message": "Quota used up",
        "guidance": "Wait.",
        "should_retry": True,
        "rule": 'errors[0] match "quota"',
    }
    assert "Quota used up" in redrive("classify", "quota").out


def test_policy_prints_the_timeline_of_a_policy_or_a_task(redrive: Redrive, folder: Path) -> None:
    config = folder / "config.toml"
    config.write_text(
        config.read_text()
        + '[retry.slow]\ndelays = ["60s", "180s", "600s"]\njitter = 0\n'
        + '[tasks.parse]\ncommand = ["true"]\nretry = "slow"\n'
    )
    for name in ("slow", "parse"):
        shown = redrive("policy", name, "--json").object
        assert [each["at"] for each in shown["timeline"]] == [0, 60, 240, 840]
    assert "14m" in redrive("policy", "slow").out
    said = redrive("policy", "sloww")
    assert said.code == 1
    assert "default, parse, slow" in said.err


def test_the_policy_of_a_step_is_asked_of_the_daemon(peer: Peer, redrive: Redrive) -> None:
    policy = msgspec.to_builtins(RetryPolicy(delays=(60.0, 180.0), jitter=0))
    peer.replies["ShowPolicy"] = PolicyReply(name="report.fetch", policy=policy, timeline=[])
    shown = redrive("policy", "report.fetch", "--json").object
    assert [each["at"] for each in shown["timeline"]] == [0, 60, 240]
    peer.replies["ShowPolicy"] = Refusal(
        code="not_found",
        message="there is no policy or task 'report.fetchh'",
        hint="so",
        exit_code=1,
    )
    said = redrive("policy", "report.fetchh")
    assert (said.code, said.err) == (
        1,
        "redrive: there is no policy or task 'report.fetchh'\n  so\n",
    )


@pytest.mark.parametrize(
    ("fate", "told"),
    [
        (FateReply(known=True), "it was carried out all the same"),
        (FateReply(known=False), "it was not carried out"),
        (FateReply(known=True, refusal="there is no queue"), "it was refused: there is no queue"),
        (Refusal(code="try_later", message="no"), "look before you ask again"),
    ],
)
def test_when_the_answer_is_lost_the_fate_of_the_command_is_asked_and_told(
    peer: Peer, redrive: Redrive, fate: FateReply | Refusal, told: str
) -> None:
    def go(_: object) -> None:
        peer.hang_up_control()

    peer.replies["PauseIt"] = go
    peer.replies["Fate"] = fate
    said = redrive("pause", "bulk")
    assert said.code == 69
    assert told in said.err.splitlines()[1]


def test_rules_are_tested_by_the_daemon(peer: Peer, redrive: Redrive) -> None:
    change = RuleChange(job=12, message="boom", was="unknown", now="quota", rule="errors[0]")
    peer.replies["TestRules"] = rehearsals.RulesReply(examined=5, changed=[change])
    out = redrive("rules", "test", "--since", "2d").out
    assert out.startswith("5 errors examined, 1 would be judged otherwise")
    assert peer.asked_for("TestRules")[0].since == 2 * 86400
    assert redrive("rules", "test", "--json").object["examined"] == 5


def test_config_check_and_show_read_the_whole_file(redrive: Redrive, folder: Path) -> None:
    assert redrive("config", "check", "--json").object["ok"] is True
    shown = redrive("config", "show", "--json").object
    assert shown["daemon"]["runtime_dir"] == str(folder)
    assert "[daemon]\n" in redrive("config", "show").out


def test_keys_are_made_and_listed(redrive: Redrive, folder: Path) -> None:
    said = redrive("keys", "new", "anna")
    assert said.code == 78
    assert "curve" in said.err
    config = folder / "config.toml"
    config.write_text(config.read_text() + '[bus]\ncurve = "keys"\n')
    assert redrive("keys", "new", "anna", "--role", "operator").code == 0
    listed = redrive("keys", "list", "--json").object
    assert (listed["name"], listed["role"]) == ("anna", "operator")
    assert "anna" in redrive("keys", "list").out


def test_pipelines_are_listed_and_shown(peer: Peer, redrive: Redrive) -> None:
    row = PipelineRow(
        name="ingest", version=2, created_at=0, steps=["store", "parse"], origin="config"
    )
    peer.replies["ListPipelines"] = queries.PipelinePage(pipelines=[row])
    peer.replies["ShowPipeline"] = queries.PipelineReply(
        name="ingest", version=2, definition={}, source="steps = []", graph="store → parse"
    )
    assert "store → parse" in redrive("pipeline", "list").out
    assert redrive("pipeline", "list", "--json").object["version"] == 2
    assert "steps = []" in redrive("pipeline", "show", "ingest", "--version", 2).out
    assert peer.asked_for("ShowPipeline")[0].version == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion(redrive: Redrive, shell: str) -> None:
    assert "_REDRIVE_COMPLETE" in redrive("completion", shell).out


def test_a_shell_completes_verbs_and_names_of_the_config(
    redrive: Redrive,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    config = folder / "config.toml"
    config.write_text(config.read_text() + '[tasks.parse]\ncommand = ["true"]\n')
    monkeypatch.setenv("_REDRIVE_COMPLETE", "bash_complete")
    for words, expected in [("redrive enq", "enqueue"), ("redrive enqueue pa", "parse")]:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        with pytest.raises(SystemExit):
            redrive()
        assert f"plain,{expected}\n" in capfd.readouterr().out
