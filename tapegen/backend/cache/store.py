"""Content-addressed disk store: one file per key, in a directory that only the user can write.

A key is a hash of all that the contents depend on, so an entry never becomes stale; damaged, foreign or missing
entries are misses.  Entries appear complete, by renaming; two writers of one key write the same.  Nothing here raises:
failures are reported once, as a `CacheWarning`, and the program continues without the cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tapegen.errors import PACKAGE, CacheWarning, frames_of_tapegen

SWITCH = "TAPEGEN_CACHE"
"""Environment variable: `0` turns the cache off."""

FOLDER = "TAPEGEN_CACHE_DIR"
"""Environment variable: the directory, instead of the user's cache home."""

LIMIT = "TAPEGEN_CACHE_MB"
"""Environment variable: the maximal size of all entries in megabytes (default 512)."""

_MAGIC = b"tapegen entry 1\n"
_HEAD = len(_MAGIC) + 32 + 32
_LARGEST = 2**28
_ABANDONED = 3600.0  # seconds after which the unfinished file of a killed writer is deleted


_STARTED = time.time()


class Unusable(Exception):
    """The reason why a directory is not used."""


@dataclass(frozen=True)
class Entry:
    """One file of the cache."""

    path: Path
    size: int
    used: float


class Store:
    """The entries of one directory."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self._warned = False

    def load(self, key: str) -> bytes | None:
        """The contents stored under a key; None if there is no valid entry."""
        path = self.folder / key
        try:
            if not os.path.lexists(path):
                return None
            self._check_folder()
            payload = self._read(path, key)
            if payload is not None:
                _note(key, payload)
            return payload
        except FileNotFoundError:
            return None
        except (Unusable, OSError, MemoryError) as error:
            self._warn(f"{path}: {error}")
            return None

    def _read(self, path: Path, key: str) -> bytes | None:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise Unusable("others can write it, or it is no file")
            text = file.read(_LARGEST)
        payload = text[_HEAD:]
        if text[:_HEAD] != _head(key, payload):
            raise Unusable("it is damaged")
        with contextlib.suppress(OSError):
            os.utime(path)  # the least recently used are deleted first
        return payload

    def save(self, key: str, payload: bytes) -> None:
        """Store an entry, unless that is not possible."""
        if len(payload) > _LARGEST - _HEAD:
            return
        _note(key, payload)
        try:
            self._make_folder()
            with contextlib.suppress(FileNotFoundError):  # another process deletes all entries at this moment
                self._publish(key, payload)
        except (Unusable, OSError, MemoryError) as error:
            self._warn(f"{self.folder}: {error}")

    def _publish(self, key: str, payload: bytes) -> None:
        """Create a file that appears complete."""
        # not the number of a process: in containers, and on shared disks, a later process may have the same
        temporary = self.folder / f".{key[:16]}-{os.urandom(8).hex()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                _write(handle, _head(key, payload))
                _write(handle, payload)
            finally:
                os.close(handle)
            os.rename(temporary, self.folder / key)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._prune(key)

    def entries(self) -> list[Entry]:
        """The finished entries, the least recently used first."""
        return sorted((each for each in self._files() if each.path.name[0] != "."), key=lambda each: each.used)

    def checked_entries(self) -> list[Entry]:
        """The same; raises where the directory would not be used."""
        with contextlib.suppress(FileNotFoundError):
            self._check_folder()
        return self.entries()

    def clear(self) -> int:
        """Delete all entries, and unfinished ones; return how many."""
        try:
            self._check_folder()
        except FileNotFoundError:
            return 0
        files = list(self._files())
        for each in files:
            each.path.unlink(missing_ok=True)
        return len(files)

    # ---- the directory -----------------------------------------------------------------------------------------------

    def _make_folder(self) -> None:
        try:
            self._check_folder()
        except FileNotFoundError:
            for path in (*reversed(self.folder.parents), self.folder):
                if not path.is_dir():
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(path, 0o700)
            self._check_folder()

    def _check_folder(self) -> None:
        """Raise if anyone else can write where entries are."""
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode):
            raise Unusable("it is no directory")
        if found.st_uid != os.geteuid():
            raise Unusable("it belongs to another user")
        if found.st_mode & 0o022:
            raise Unusable("others can write into it")
        real = Path(os.path.realpath(self.folder.parent))  # a link may point to a directory where others write
        for parent in dict.fromkeys((*self.folder.parents, real, *real.parents)):
            if _others_write_into(os.stat(parent)):
                raise Unusable(f"others can write into {parent}")

    def _files(self) -> Iterator[Entry]:
        try:
            with os.scandir(self.folder) as found:
                for item in found:
                    with contextlib.suppress(FileNotFoundError):
                        about = item.stat(follow_symlinks=False)
                        if stat.S_ISREG(about.st_mode) and _is_ours(item.name):
                            yield Entry(Path(item.path), about.st_size, about.st_mtime)
        except FileNotFoundError:
            return

    def _prune(self, newest: str) -> None:
        """Delete the least recently used entries if the size exceeds the limit.

        An unfinished file may be deleted too; its writer then stores nothing.
        """
        total, entries = 0, []
        for each in self._files():
            if each.path.name[0] == "." and time.time() - each.used > _ABANDONED:
                each.path.unlink(missing_ok=True)
            else:
                total += each.size
                entries.append(each)
        if total <= self.limit:
            return
        for each in sorted(entries, key=lambda each: each.used):
            if each.path.name != newest:
                each.path.unlink(missing_ok=True)
                total -= each.size
            if total <= 0.8 * self.limit:
                break

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            message = f"the cache is not used ({reason}); what is compiled now will be compiled again"
            warnings.warn(message, CacheWarning, stacklevel=frames_of_tapegen())


def _head(key: str, payload: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(key.encode()).digest() + hashlib.sha256(payload).digest()


def _is_ours(name: str) -> bool:
    return len(name.lstrip(".").partition("-")[0]) in (16, 64) and name.strip(".-0123456789abcdef") == ""


def _others_write_into(found: os.stat_result) -> bool:
    """Whether another user can replace the contents of a directory.

    In a sticky directory, such as `/tmp`, only owners rename.
    """
    if found.st_mode & stat.S_ISVTX:
        return False
    return bool(found.st_mode & 0o002 or (found.st_mode & 0o020 and not _is_of_user_alone(found.st_gid)))


@functools.cache
def _is_of_user_alone(group: int) -> bool:
    """Whether a group is the private group that many systems create for each user, so that only the user is in it."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    name = user.pw_name
    return (group, found.gr_name) == (user.pw_gid, name) and set(found.gr_mem) <= {name}


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


# ---- the user's directory ------------------------------------------------------------------------------------------

_stores: dict[tuple[str, int], Store] = {}
_homeless: list[bool] = []
_thread = threading.local()


def store() -> Store | None:
    """The directory of the user, according to the environment; None if the cache is off or there is no home."""
    if switched_off():
        return None
    folder = cache_folder()
    if folder is None:
        if not _homeless:
            _homeless.append(True)
            message = f"there is no home directory, so nothing is stored on disk; set {FOLDER}"
            warnings.warn(message, CacheWarning, stacklevel=frames_of_tapegen())
        return None
    key = (str(folder), size_limit())
    return _stores.setdefault(key, Store(folder, key[1]))


@contextlib.contextmanager
def collected() -> Iterator[dict[str, bytes]]:
    """The entries that this thread reads and stores meanwhile."""
    before = getattr(_thread, "entries", None)
    _thread.entries = {}
    try:
        yield _thread.entries
    finally:
        _thread.entries = before


def _note(key: str, payload: bytes) -> None:
    found = getattr(_thread, "entries", None)
    if found is not None:
        found[key] = payload


def switched_off() -> bool:
    """Whether the environment switches the cache off."""
    return os.environ.get(SWITCH, "").strip().lower() in ("0", "off", "no", "false")


def cache_folder() -> Path | None:
    """The directory of the entries."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(os.path.abspath(given))
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "tapegen"
    user = os.path.expanduser("~")
    return Path(user) / ".cache" / "tapegen" if os.path.isabs(user) else None


def size_limit() -> int:
    """The maximal size of all entries in bytes."""
    text = os.environ.get(LIMIT, "")
    return int(text) * 2**20 if text.isdecimal() else 512 * 2**20


# ---- keys ----------------------------------------------------------------------------------------------------------


def key_of(*parts: str | bytes) -> str:
    """A hash of parts, and of the versions of everything that affects code."""
    digest = hashlib.sha256(base())
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


@functools.cache
def base() -> bytes:
    """What every entry depends on: this package, Python, and the packages it uses."""
    import platform

    import llvmlite
    import numba
    import numpy
    import scipy

    digest = hashlib.sha256()
    versions = (sys.version, numpy.__version__, numba.__version__, llvmlite.__version__, scipy.__version__)
    for text in (*versions, sys.implementation.cache_tag or "", platform.machine(), sys.platform):
        digest.update(f"{len(text)}:{text}".encode())
    walk = os.walk(PACKAGE)
    files = sorted(os.path.join(folder, name) for folder, _, names in walk for name in names if name.endswith(".py"))
    for path in sorted(files):
        with open(path, "rb") as file:
            digest.update(f"{path[len(PACKAGE) :]}\n".encode() + hashlib.sha256(file.read()).digest())
    if any(os.stat(path).st_mtime > _STARTED for path in files):
        digest.update(os.urandom(32))  # the running code is not that of the files any more
    return digest.digest()


__all__ = [
    "FOLDER",
    "LIMIT",
    "SWITCH",
    "Entry",
    "Store",
    "Unusable",
    "cache_folder",
    "collected",
    "key_of",
    "size_limit",
    "store",
    "switched_off",
]
