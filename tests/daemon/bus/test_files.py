"""The socket files: who may open them, and that they are ours."""

from __future__ import annotations

import grp
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from redrive.config.sections import Bus as Settings
from redrive.errors import AlreadyRunning, ConfigProblem
from redrive.protocol.queries import Doctor
from redrived.bus import Bus
from redrived.instance_lock import InstanceLock
from support.bus import Raw, Served, elsewhere, serving

SOCKETS = ("events", "query", "control")

CONNECT = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(65534)
for path in sys.argv[2:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("open", end=" ")
    except PermissionError:
        print("closed", end=" ")
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> list[int]:
    return [mode(folder / name) for name in SOCKETS]


@pytest.fixture
def two_groups() -> list[str]:
    mine = set(os.getgroups())
    names = [group.gr_name for group in grp.getgrall() if os.geteuid() == 0 or group.gr_gid in mine]
    if len(names) < 2:
        pytest.skip("this user is in one group only")
    return names[-2:]


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
async def test_nobody_else_gets_at_the_sockets_whatever_the_umask(folder: Path) -> None:
    async with serving(folder / "run"):
        assert mode(folder / "run") == 0o700
        assert modes(folder / "run") == [0o600] * 3
        assert sorted(path.name for path in (folder / "run").iterdir()) == sorted(SOCKETS)


async def test_one_group_is_let_in_socket_by_socket(folder: Path, two_groups: list[str]) -> None:
    viewers, _ = two_groups
    async with serving(folder / "run", settings=Settings(viewers=viewers)):
        assert mode(folder / "run") == 0o711
        # systemd would give all that is in a folder of another group to the group of the unit.
        assert (folder / "run").stat().st_gid == os.getegid()
        assert modes(folder / "run") == [0o660, 0o660, 0o600]
        assert (folder / "run" / "query").stat().st_gid == grp.getgrnam(viewers).gr_gid


async def test_operators_may_look_too_when_no_viewers_are_named(
    folder: Path, two_groups: list[str]
) -> None:
    _, operators = two_groups
    async with serving(folder / "run", settings=Settings(operators=operators)):
        assert modes(folder / "run") == [0o660] * 3


async def test_two_groups_pass_the_folder_and_are_told_apart_by_the_sockets(
    folder: Path, two_groups: list[str]
) -> None:
    viewers, operators = two_groups
    settings = Settings(viewers=viewers, operators=operators)
    async with serving(folder / "run", settings=settings):
        assert mode(folder / "run") == 0o711
        owners = [(folder / "run" / name).stat().st_gid for name in SOCKETS]
        assert owners == [grp.getgrnam(name).gr_gid for name in (viewers, viewers, operators)]


@pytest.fixture
def passable(folder: Path) -> Path:
    folder.chmod(0o711)
    return folder


@as_root
async def test_another_user_is_kept_out_and_a_viewer_only_looks(
    passable: Path, two_groups: list[str]
) -> None:
    folder = passable
    viewers, operators = two_groups
    paths = [str(folder / "run" / name) for name in SOCKETS]
    viewer = str(grp.getgrnam(viewers).gr_gid)
    async with serving(folder / "run"):
        assert await elsewhere(CONNECT, viewer, *paths) == "closed closed closed "
    async with serving(folder / "run", settings=Settings(viewers=viewers, operators=operators)):
        assert await elsewhere(CONNECT, "65534", *paths) == "closed closed closed "
        assert await elsewhere(CONNECT, viewer, *paths) == "open open closed "


async def test_an_unknown_group_is_named(folder: Path) -> None:
    bus = Bus(Settings(viewers="no-such-group"), folder / "run", "one")
    with pytest.raises(ConfigProblem, match="no group 'no-such-group'"):
        await bus.start()
    await bus.stop()


@pytest.mark.parametrize("is_member", [True, False])
async def test_a_group_that_may_not_be_given_a_socket_is_told_with_the_socket_and_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_member: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    group = grp.getgrgid(os.getegid())
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "getegid", lambda: group.gr_gid if is_member else -1)
    monkeypatch.setattr(os, "getgroups", list[int])
    bus = Bus(Settings(operators=group.gr_name), folder / "run", "one")
    with pytest.raises(ConfigProblem, match=f"open {folder}/run/events to the group") as caught:
        await bus.start()
    assert ("@chown" in caught.value.hint) is is_member
    assert caught.value.hint.startswith("make that user a member") is not is_member
    await bus.stop()


async def test_files_that_a_killed_daemon_left_are_no_obstacle(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    for name in SOCKETS:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(run / name))
    async with serving(run) as served:
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
            assert (await raw.ask(Doctor())).refusal is None


async def test_the_socket_files_go_with_the_daemon(folder: Path) -> None:
    async with serving(folder / "run"):
        pass
    assert list((folder / "run").iterdir()) == []


async def test_a_second_daemon_is_stopped_by_the_lock_before_it_touches_a_socket(
    folder: Path,
) -> None:
    lock = InstanceLock(folder)
    lock.take()
    async with serving(folder / "run") as served:
        before = [(folder / "run" / name).stat().st_ino for name in SOCKETS]
        with pytest.raises(AlreadyRunning):
            InstanceLock(folder).take()
        assert [(folder / "run" / name).stat().st_ino for name in SOCKETS] == before
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
            assert (await raw.ask(Doctor())).refusal is None
    lock.release()


@pytest.mark.parametrize("loss", ["removed", "replaced"])
async def test_a_socket_file_that_was_lost_is_made_anew_and_nobody_is_cut_off(
    served: Served, folder: Path, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "run" / "query"
    address = served.bus.addresses["query"]
    with Raw(zmq.DEALER, address) as old:
        assert (await old.ask(Doctor())).refusal is None
        path.unlink()
        thief = socket.socket(socket.AF_UNIX)
        if loss == "replaced":
            thief.bind(str(path))

        served.bus.look_after_files()

        with thief, Raw(zmq.DEALER, address) as new:
            assert (await new.ask(Doctor())).refusal is None
            assert (await old.ask(Doctor(), id="b")).refusal is None
    assert mode(path) == 0o600
    assert "removed or replaced" in caplog.text


async def test_a_removed_folder_of_sockets_is_made_anew_and_is_as_private_as_before(
    served: Served, folder: Path
) -> None:
    shutil.rmtree(folder / "run")
    served.bus.look_after_files()
    assert mode(folder / "run") == 0o700
    assert [mode(folder / "run" / name) for name in SOCKETS] == [0o600] * 3
    with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
        assert (await raw.ask(Doctor())).refusal is None


async def test_a_folder_of_sockets_that_somebody_else_made_anew_is_made_private(
    served: Served, folder: Path
) -> None:
    shutil.rmtree(folder / "run")
    (folder / "run").mkdir()
    (folder / "run").chmod(0o755)
    served.bus.look_after_files()
    assert mode(folder / "run") == 0o700


@pytest.mark.parametrize("groups", ["viewers", "operators"])
async def test_a_folder_that_was_closed_to_the_groups_is_opened_again(
    folder: Path, two_groups: list[str], groups: str
) -> None:
    """systemd gives a `RuntimeDirectory=` the mode of the unit, whenever it is reloaded."""
    settings = Settings(**{groups: two_groups[0]})
    async with serving(folder / "run", settings=settings) as served:
        (folder / "run").chmod(0o750)
        served.bus.look_after_files()
        assert mode(folder / "run") == 0o711


async def test_files_that_are_ours_are_left_alone(served: Served, folder: Path) -> None:
    before = [(folder / "run" / name).stat().st_ino for name in SOCKETS]
    served.bus.look_after_files()
    assert [(folder / "run" / name).stat().st_ino for name in SOCKETS] == before


async def test_a_path_that_is_too_long_is_refused_with_what_to_set(folder: Path) -> None:
    bus = Bus(Settings(), folder / ("x" * 100), "one")
    with pytest.raises(ConfigProblem, match="too long") as caught:
        await bus.start()
    assert "runtime_dir" in caught.value.hint
    await bus.stop()


async def test_a_folder_that_is_a_link_is_refused(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "run").symlink_to(folder / "elsewhere")
    bus = Bus(Settings(), folder / "run", "one")
    with pytest.raises(ConfigProblem, match="not a folder of the daemon's own user"):
        await bus.start()
    await bus.stop()


@as_root
async def test_a_folder_of_somebody_else_is_refused(folder: Path) -> None:
    (folder / "run").mkdir()
    os.chown(folder / "run", 65534, 65534)
    bus = Bus(Settings(), folder / "run", "one")
    with pytest.raises(ConfigProblem, match="not a folder of the daemon's own user"):
        await bus.start()
    await bus.stop()


async def test_an_address_of_its_own_is_used_and_private_too(folder: Path) -> None:
    (folder / "own").mkdir()
    settings = Settings(control=f"ipc://{folder}/own/changes")
    async with serving(folder / "run", settings=settings) as served:
        assert served.bus.addresses["control"] == settings.control
        assert mode(folder / "own" / "changes") == 0o600
