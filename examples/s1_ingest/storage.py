"""Where archives are kept: a folder that may be away, as a mounted share may."""

import hashlib
import os
import shutil
from pathlib import Path

FOLDER = Path("storage")


class StorageUnavailable(Exception):
    """The folder is not there; it may come back."""


def put(path):
    """Keep a copy; the key it can be found by. The same content is kept once."""
    _check()
    with open(path, "rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()
    kept = FOLDER / key
    if not kept.exists():
        partial = FOLDER / f"{key}.{os.getpid()}"
        shutil.copyfile(path, partial)
        partial.rename(kept)
    return key


def get(key):
    _check()
    return FOLDER / key


def _check():
    if not FOLDER.is_dir():
        raise StorageUnavailable(f"storage unavailable: {FOLDER.resolve()} is not there")
