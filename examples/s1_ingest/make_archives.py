"""Makes archives to try the ingestion with, good ones and bad ones, in data/uploads."""

import io
import tarfile
import zipfile
from pathlib import Path

UPLOADS = Path("data/uploads")


def confs(files=20, stanzas=5):
    return {
        f"site/{number:03}.conf": "".join(
            f"[input:{number}:{place}]\nindex = main\ninterval = {place}\n"
            for place in range(stanzas)
        )
        for number in range(files)
    }


def as_zip(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def as_tar(files, mode="w"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def linked():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("site/passwords.conf")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


def main():
    good = confs()
    bomb = {"bomb.conf": "[a]\n" + " " * (80 << 20)}
    archives = {
        "good.zip": as_zip(good),
        "good.tar": as_tar(good),
        "good.tar.gz": as_tar(good, "w:gz"),
        "large.zip": as_zip(confs(files=400, stanzas=10)),
        "flawed.zip": as_zip({**good, "flawed.conf": "[fine]\na = 1\nwhat is this\n[also fine]\n"}),
        "corrupt.zip": as_zip(good)[:-200],
        "corrupt.tar.gz": as_tar(good, "w:gz")[:-200],
        "none.zip": b"this is no archive at all",
        "empty.zip": as_zip({"readme.txt": "nothing to see"}),
        "prose.zip": as_zip({"prose.conf": "no stanza\nin here\n"}),
        "climbing.zip": as_zip({"../../etc/cron.d/evil.conf": "[a]\n"}),
        "absolute.tar": as_tar({"/etc/evil.conf": "[a]\n"}),
        "linked.tar": linked(),
        "bomb.zip": as_zip(bomb),
        "bomb.tar.gz": as_tar(bomb, "w:gz"),
    }
    UPLOADS.mkdir(parents=True, exist_ok=True)
    for name, content in archives.items():
        (UPLOADS / name).write_bytes(content)
    print(f"{len(archives)} archives in {UPLOADS}")


if __name__ == "__main__":
    main()
