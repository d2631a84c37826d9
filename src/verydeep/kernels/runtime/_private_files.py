"""Files that nobody but this user, or the administrator, could have written.

A checksum inside a file proves that it is whole, not where it comes from. In a cache that others may write to, for
example below a world-writable folder, anyone could plant code; such files are not read, and what they hold is computed
again.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from verydeep.files import write_atomic

_OTHERS, _GROUP = stat.S_IWOTH, stat.S_IWGRP


def read_private(path: Path) -> bytes | None:
    """The content of a file; None if it does not exist, or if someone else could have written it."""
    if not hasattr(os, "geteuid"):  # Windows: the cache is in the user's profile, which others cannot write to
        return path.read_bytes() if path.exists() else None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            folders = {*path.absolute().parents, *path.resolve().parents}
            if not stat.S_ISREG(found.st_mode) or not _is_ours(found) or not all(map(_is_private_folder, folders)):
                return None
            return file.read()
    except OSError:
        return None


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read and write, in a folder that only this user can use."""

    def write(partial: Path) -> None:
        partial.chmod(0o600)
        partial.write_bytes(content)

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # the folder of someone else: nothing in it will be read
        path.parent.chmod(0o700)
    write_atomic(path, write)


def _is_private_folder(folder: Path) -> bool:
    """Whether only this user and the administrator can replace what is in the folder and belongs to them."""
    found = folder.lstat()
    is_sticky_folder = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)  # as /tmp
    return _is_ours(found, is_sticky_folder or stat.S_ISLNK(found.st_mode))


def _is_ours(found: os.stat_result, others_may_write: bool = False) -> bool:
    writers = found.st_mode & (_OTHERS | _GROUP)
    if writers == _GROUP and _is_own_group(found.st_gid):
        writers = 0
    return found.st_uid in (0, os.geteuid()) and (others_may_write or not writers)


def _is_own_group(group: int) -> bool:
    """Whether a group has no member but this user, as most systems create one per user."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_gid == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}
