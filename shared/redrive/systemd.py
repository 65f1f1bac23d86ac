"""The units for systemd: general, strict, and a user's own.

The general one lets jobs do what jobs do; the strict one keeps from the daemon, and so from
every job it starts, whatever it can do without. docs/operations.md says which line of it
a job may stumble over, and how that looks.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from redrive.config import Config
from redrive.errors import NotAllowed, UsageProblem

Profile = Literal["general", "strict", "user"]

STATE = Path("/var/lib/redrive")
RUNTIME = Path("/run/redrive")
SYSTEM_UNITS = Path("/etc/systemd/system")
USER_UNITS = Path(".config/systemd/user")
NAME = "redrived.service"
HOMES = (Path("/home"), Path("/root"), Path("/run/user"))  # what ProtectHome=yes closes
MOST_LINKS = 40  # on the way to a file; the kernel follows no more

_PLAIN = re.compile(r"[A-Za-z0-9_/.,:=+@-]+")

_UNIT = """\
[Unit]
Description=redrive supervisor
Documentation=man:systemd.service(5)
{after}# However long a database is away: it is tried again without end, at the pace of RestartSec.
StartLimitIntervalSec=0
"""

_SERVICE = """
[Service]
Type=notify
NotifyAccess=main
ExecStart={daemon} --config {config}
ExecReload={client} --config {config} reload
WatchdogSec=30
WatchdogSignal=SIGABRT
TimeoutStartSec=60
TimeoutStopSec=90
TimeoutAbortSec=20
Restart=on-failure
RestartSec=5
# A bad config, or a second daemon, does not get better by trying again.
RestartPreventExitStatus=78 69
# The daemon ends its jobs itself, in order; what is left after it is killed.
KillMode=mixed
OOMPolicy=continue
Delegate=yes
UMask=0077
LimitNOFILE=65536
LimitCORE=0
TasksMax=4096
NoNewPrivileges=yes
"""

_SYSTEM = """\
User={user}
Group={user}
StateDirectory=redrive
StateDirectoryMode=0700
RuntimeDirectory=redrive
# As the daemon has it for the groups of [bus]: systemd sets it anew with every reload.
RuntimeDirectoryMode=0711
ConfigurationDirectory=redrive
ConfigurationDirectoryMode=0750
CapabilityBoundingSet=
AmbientCapabilities=
RestrictSUIDSGID=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
"""

_GENERAL = """\
ProtectSystem=full
"""

_STRICT = """\
ProtectSystem=strict
{writable}ProtectHome=yes
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
# Not @resources: libzmq's threads set their scheduling, and it aborts when that is refused.
SystemCallFilter=~@privileged
# The daemon gives its sockets to the groups of [bus], and may: it is a member of them.
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM
RemoveIPC=yes
KeyringMode=private
"""

_INSTALL = """
[Install]
WantedBy={target}
"""


class Place(Struct, frozen=True, kw_only=True):
    """What a unit needs to know of this installation."""

    config: str
    daemon: str = "/usr/bin/redrived"  # words of a command line
    client: str = "/usr/bin/redrive"
    user: str = "redrive"
    writable: tuple[str, ...] = ()  # folders beside the state folder that systemd makes


class Installed(Struct, frozen=True, kw_only=True):
    path: str
    next: list[str]  # what is left for a person to do
    notes: list[str] = []


def unit(profile: Profile, place: Place) -> str:
    """The text of a unit."""
    after = "After=network-online.target time-sync.target\nWants=network-online.target\n"
    parts = [
        _UNIT.format(after="" if profile == "user" else after),
        _SERVICE.format(daemon=place.daemon, client=place.client, config=quoted(place.config)),
    ]
    if profile != "user":
        parts.append(_SYSTEM.format(user=place.user))
    if profile == "general":
        parts.append(_GENERAL)
    if profile == "strict":
        folders = " ".join(map(quoted, place.writable))
        writable = f"ReadWritePaths={folders}\n" if folders else ""
        parts.append(_STRICT.format(writable=writable))
    target = "default.target" if profile == "user" else "multi-user.target"
    return "".join([*parts, _INSTALL.format(target=target)])


def here(config: Config, user: str = "redrive") -> Place:
    """This installation, with the config that is in use."""
    assert config.path is not None
    folder = Path(sys.executable).parent
    named = [config.daemon.state_dir, config.daemon.runtime_dir]
    return Place(
        config=config.path,
        daemon=_words(folder / "redrived", "redrived"),
        client=_words(folder / "redrive", "redrive"),
        user=user,
        writable=tuple(each for each in named if each and Path(each) not in (STATE, RUNTIME)),
    )


def install(profile: Profile, config: Config, *, user: str = "redrive") -> Installed:
    """Write the unit where systemd looks for it."""
    place = here(config, user)
    if profile == "strict":
        _refuse_home(place)
    folder = Path.home() / USER_UNITS if profile == "user" else SYSTEM_UNITS
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(unit(profile, place))
        path.chmod(0o644)
    except PermissionError as error:
        raise NotAllowed(
            f"{path} cannot be written: {error.strerror}",
            hint="run it as root, or with --user for a service of your own",
        ) from error
    systemctl = "systemctl --user" if profile == "user" else "systemctl"
    return Installed(
        path=str(path),
        next=[f"{systemctl} daemon-reload", f"{systemctl} enable --now redrived"],
        notes=_notes(profile, config, user),
    )


def quoted(word: str) -> str:
    """A word as systemd reads it back: its quotes, variables and specifiers are not a shell's."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%")
    return f'"{escaped}"'


def _words(script: Path, module: str) -> str:
    if script.exists():
        return quoted(str(script))
    return f"{quoted(sys.executable)} -m {module}"


def _refuse_home(place: Place) -> None:
    """A venv elsewhere does not do where its interpreter is a link into a home."""
    # A home may be a link itself (/home, to /var/home), and the unit follows it.
    homes = {each for home in HOMES for each in (home, home.resolve())}
    for path in (place.config, sys.executable, sys.base_prefix, *place.writable):
        for step in _steps_to(path):
            if homes.intersection(step.parents):
                what = path if step == Path(path) else f"{path} leads to {step}, which"
                raise UsageProblem(
                    f"{what} is in a home, and the strict unit keeps homes from the daemon",
                    hint="install redrive elsewhere, its config and its Python, too"
                    " (`/usr/bin/python3 -m venv`, say), or leave out --strict",
                )


def _steps_to(path: str) -> Iterator[Path]:
    """Each link on the way to a path, then where it ends; a link is where its last part lies."""
    place = Path(path)
    for _ in range(MOST_LINKS):
        way = (*reversed(place.parents), place)
        link = next((part for part in way if os.path.islink(part)), None)
        yield Path(os.path.normpath(link or place))
        if link is None:
            return
        place = link.parent / link.readlink() / place.relative_to(link)


def _notes(profile: Profile, config: Config, user: str) -> list[str]:
    """What else has to be right for it to work."""
    if profile == "user":
        return ["`loginctl enable-linger` lets it run while you are not logged in"]
    notes: list[str] = []
    if not _exists(user):
        notes.append(f"there is no user {user} yet: useradd --system --home-dir {STATE} {user}")
    for name, folder in (("state_dir", STATE), ("runtime_dir", RUNTIME)):
        if getattr(config.daemon, name) is None:
            notes.append(
                f'[daemon] {name} = "{folder}" tells `redrive` where the service has its folder'
            )
    return notes


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
