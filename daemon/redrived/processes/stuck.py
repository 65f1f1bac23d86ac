"""What is said of processes that SIGKILL does not end."""

from __future__ import annotations

from collections.abc import Iterable


def stuck_words(pids: Iterable[int]) -> str:
    return f"SIGKILL does not end process {', '.join(map(str, pids))}"


def stuck_hint(pids: Iterable[int]) -> str:
    return (
        "it is in disk sleep or frozen: look at the disk or the NFS mount it waits for, or thaw"
        f" it; `ps -o pid,stat,wchan,args -p {','.join(map(str, pids))}` says which"
    )
