"""Which folders a watcher has to hear of, and whether what others change there is heard of at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from vault_palace.core import places

# File systems on which another machine, or the host of a virtual one, writes without this kernel's knowing.
REMOTE = frozenset(
    {
        "9p",
        "afs",
        "afpfs",
        "ceph",
        "cifs",
        "davfs",
        "drvfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "webdav",
    }
)


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a vault, vault-relative, `` for its root; `unreadable` could not be listed."""

    readable: tuple[str, ...]
    unreadable: frozenset[str]


def find_folders(root: Path, also: Iterable[str] = ()) -> Folders:
    """Every folder that may hold what matters, and those named in *also*; links are not followed.

    Dot-folders and `node_modules` are left out: one checkout of a program would fill the system's table of
    watches. A root that cannot be listed raises `OSError`.
    """
    readable: list[str] = []
    unreadable: list[str] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            if not folder:
                raise
            continue
        except OSError:
            if not folder:
                raise
            unreadable.append(folder)
            continue
        readable.append(folder)
        kept = sorted(name for name in names if not places.is_ignored_folder(name))
        waiting += [f"{folder}/{name}" if folder else name for name in reversed(kept)]
    readable += [name for name in also if os.path.isdir(os.path.join(root, name))]
    return Folders(tuple(readable), frozenset(unreadable))


def remote_system(root: Path, read: Callable[[], str] | None = None) -> str:
    """The name of the network file system that *root* lies on; empty when it is local or unknown."""
    try:
        table = (read or _mount_table)()
    except OSError:
        return ""  # no such table: not Linux
    best, kind = "", ""
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        # Of two mounts on one point the later one is what is seen.
        if len(point) >= len(best) and root.is_relative_to(point):
            best, kind = point, kinds[0]
    return kind if kind in REMOTE else ""


def _mount_table() -> str:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        return table.read()
