"""What the C library keeps, seen in processes of their own: settings hold for a whole process."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has one heap anyway"
)

COMMON = """
import asyncio, ctypes, threading
import psutil
from redrived import memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
MIB = 1024 * 1024

def take(size):
    block = libc.malloc(size)
    libc.memset(block, 1, size)
    return block

def rss():
    return psutil.Process().memory_info().rss
"""
# Where each thread's block lies, while all of them are there.
THREADS = """
memory.set_up()
blocks, all_there = [], threading.Barrier(8)

def work():
    all_there.wait()
    blocks.append(take(100_000))
    all_there.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(max(blocks) - min(blocks) < 64 * MIB)
"""
# A burst of which a block here and there stays, so that the heap cannot end earlier.
BURST = """
memory.set_up()
blocks = [take(10_000) for _ in range(10_000)]
kept = set(blocks[::1000]) | {blocks[-1]}
full = rss()
for block in blocks:
    if block not in kept:
        libc.free(block)
before = rss()
asyncio.run(memory.give_back())
print(full - before < 10 * MIB, before - rss() > 80 * MIB)
"""
# glibc would keep a heap twice as large as the largest block it has seen.
LARGE = """
memory.set_up()
libc.free(take(20 * MIB))
before = rss()
block = take(20 * MIB)
libc.free(block)
print(rss() - before < 10 * MIB)
"""


def seen(program: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", COMMON + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return run.stdout.split()


def test_threads_share_one_heap() -> None:
    assert seen(THREADS) == ["True"]


def test_what_a_burst_leaves_between_blocks_in_use_is_given_back() -> None:
    assert seen(BURST) == ["True", "True"]


def test_a_large_block_is_given_back_at_once_also_the_second_time() -> None:
    assert seen(LARGE) == ["True"]
