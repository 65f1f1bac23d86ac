"""Archives of .conf files: zip, tar and tar.gz, read without ever writing what is in them.

The whole list is looked at before the first file is read, so that an archive that means harm
leaves nothing behind.
"""

import gzip
import re
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from tempfile import TemporaryFile

LARGEST = 64 << 20  # bytes, unpacked, all files together
MOST = 10_000  # files

# NotImplementedError: a compression that nobody uses.
DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError,
          NotImplementedError)  # fmt: skip

_HOSTILE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|[\x00-\x1f]")


class MalformedArchive(Exception):
    """Damaged, or no archive at all."""


class EmptyArchive(Exception):
    """There is no .conf file in it."""


class HostileArchive(Exception):
    """It would write elsewhere, or grow without bounds."""


@contextmanager
def opened(path):
    """The .conf files of an archive, as pairs of a path inside it and a function that reads it."""
    try:
        with open(path, "rb") as file:
            magic = file.read(2)
            file.seek(0)
            match magic:
                case b"PK":
                    with zipfile.ZipFile(file) as archive:
                        yield _in_zip(archive)
                case b"\x1f\x8b":
                    with _unpacked(file) as plain, tarfile.open(fileobj=plain) as archive:
                        yield _in_tar(archive)
                case _:
                    with tarfile.open(fileobj=file, mode="r:") as archive:
                        yield _in_tar(archive)
    except DAMAGE as damage:
        raise MalformedArchive(f"malformed archive: {damage}") from damage


def _in_zip(archive):
    members = archive.infolist()
    if any(member.flag_bits & 1 for member in members):
        raise MalformedArchive("malformed archive: it is encrypted")
    for member in members:
        # The upper half holds the mode of Unix, where a link can be told by it.
        if member.external_attr >> 28 == 0o12:
            raise HostileArchive(f"{member.filename!r} is a link")
    _check([(member.filename, member.file_size) for member in members])
    return _conf_files(
        (member.filename, lambda member=member: archive.read(member))
        for member in members
        if not member.is_dir()
    )


def _in_tar(archive):
    members = archive.getmembers()
    for member in members:
        if not (member.isfile() or member.isdir()):
            raise HostileArchive(f"{member.name!r} is a link or a device")
    _check([(member.name, member.size) for member in members])
    return _conf_files(
        (member.name, lambda member=member: archive.extractfile(member).read())
        for member in members
        if member.isfile()
    )


def _check(members):
    if len(members) > MOST:
        raise HostileArchive(f"more than {MOST} files")
    for name, _ in members:
        if _HOSTILE.search(name):
            raise HostileArchive(f"{name!r} leads out of the archive")
    if sum(size for _, size in members) > LARGEST:
        raise HostileArchive(f"more than {LARGEST >> 20} MB unpacked")


def _conf_files(files):
    found = [(name, read) for name, read in files if name.endswith(".conf")]
    if not found:
        raise EmptyArchive("no .conf file in the archive")
    return found


@contextmanager
def _unpacked(file):
    """What a gzip file holds, up to a limit; tarfile itself would follow it to any size."""
    with TemporaryFile() as plain, gzip.open(file) as packed:
        while chunk := packed.read(1 << 20):
            plain.write(chunk)
            if plain.tell() > LARGEST:
                raise HostileArchive(f"more than {LARGEST >> 20} MB unpacked")
        plain.seek(0)
        yield plain
