"""What happens to a cache: files that are damaged or replaced, and directories that others can write."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], None]


def _change(path: Path, change: Callable[[bytearray], object]) -> None:
    """Change a file in place, so that whoever reads it at this moment sees any mixture."""
    with contextlib.suppress(OSError), open(path, "r+b", opener=_no_follow) as file:
        data = bytearray(file.read())
        change(data)
        file.seek(0)
        file.truncate()
        file.write(data)


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _flip(path: Path, rng: random.Random) -> None:
    def flip(data: bytearray) -> None:
        for _ in range(rng.choice([1, 1, 1, 8]) if data else 0):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)

    _change(path, flip)


def _cut(path: Path, rng: random.Random) -> None:
    def cut(data: bytearray) -> None:
        del data[rng.randrange(len(data) + 1) :]

    _change(path, cut)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _replaced(make: Callable[[Path], object]) -> Damage:
    """Something else under the name of an entry."""

    def damage(path: Path, rng: random.Random) -> None:
        _remove(path)
        make(path)

    return damage


def _another(path: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(each for each in path.parent.iterdir() if each.name[0] != "."))


def _swap(path: Path, rng: random.Random) -> None:
    other, aside = _another(path, rng), path.with_name("aside")
    os.rename(path, aside)
    if other != path:
        os.rename(other, path)
    os.rename(aside, other)


def _copy(path: Path, rng: random.Random) -> None:
    other = _another(path, rng)
    if other != path and other.is_file():
        _replaced(lambda path: shutil.copy(other, path))(path, rng)


def _link_to_another(path: Path, rng: random.Random) -> None:
    other = _another(path, rng)
    if other != path:
        _replaced(lambda path: path.symlink_to(other))(path, rng)


def _mode(*modes: int) -> Damage:
    return lambda path, rng: os.chmod(path, rng.choice(modes))


def _own(path: Path, rng: random.Random) -> None:
    if os.geteuid() == 0:
        os.chown(path, 65534, -1, follow_symlinks=False)


ENTRIES: dict[str, Damage] = {
    "bits flipped": _flip,
    "cut short": _cut,
    "emptied": lambda path, rng: _change(path, bytearray.clear),
    "lengthened": lambda path, rng: _change(path, lambda data: data.extend(rng.randbytes(rng.randrange(1, 5000)))),
    "filled with zeros": lambda path, rng: _change(path, lambda data: data.__setitem__(slice(None), bytes(len(data)))),
    "swapped with another": _swap,
    "replaced by a copy of another": _copy,
    "deleted": lambda path, rng: _remove(path),
    "unreadable": _mode(0o000),
    "writable for others": _mode(0o666, 0o602, 0o620),
    "owned by another user": _own,
    "replaced by a directory": _replaced(Path.mkdir),
    "replaced by a fifo": _replaced(os.mkfifo),
    "replaced by a link to another": _link_to_another,
    "replaced by a link to nowhere": _replaced(lambda path: path.symlink_to("nowhere")),
    "replaced by a link to /dev/zero": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "used in the past or in the future": lambda path, rng: os.utime(path, (rng.choice([0, 2**33]),) * 2),
}
"""Damage to one entry."""


def _folder_is_a_link(folder: Path, rng: random.Random) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


def _group_of_others(path: Path, mode: int) -> None:
    """Let a group write that is not the user's own."""
    if os.geteuid() == 0:
        os.chown(path, -1, 65534)
    os.chmod(path, mode)


UNSAFE: dict[str, Damage] = {
    "directory writable for its group": lambda folder, rng: folder.chmod(rng.choice([0o770, 0o720])),
    "directory writable for all": lambda folder, rng: folder.chmod(rng.choice([0o777, 0o702, 0o1777])),
    "directory of another user": _own,
    "directory that is a link": _folder_is_a_link,
    "parent writable for its group": lambda folder, rng: _group_of_others(folder.parent, rng.choice([0o770, 0o775])),
    "parent writable for all": lambda folder, rng: folder.parent.chmod(rng.choice([0o777, 0o702])),
}
"""Damage to the directory and what it lies in, after which nothing of it may be used."""

if os.geteuid() != 0:
    del ENTRIES["owned by another user"], UNSAFE["directory of another user"], UNSAFE["parent writable for its group"]


def mend(folder: Path) -> None:
    """Undo damage to the directory and what it lies in."""
    for path in (folder.parent, folder):
        if path.is_symlink():
            path.unlink()
            path.with_name("elsewhere").rename(path)
        if path.exists():
            os.chown(path, os.geteuid(), os.getegid())
            path.chmod(0o700)


def remove_replaced(folder: Path) -> None:
    """Delete what is no file where entries should be."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.is_symlink() or not path.is_file():
            _remove(path)


__all__ = ["ENTRIES", "UNSAFE", "mend", "remove_replaced"]
