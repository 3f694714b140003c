"""The cache on disk: its files, whatever happens to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tapegen.backend.cache import store as cache_store
from tapegen.backend.cache.store import Store, key_of
from tapegen.cli import main
from tapegen.errors import CacheWarning

KEY = key_of("a test")
OTHER = key_of("another test")
MB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "tapegen"


@pytest.fixture
def kept(folder: Path) -> Store:
    return Store(folder, 64 * MB)


@contextlib.contextmanager
def one_warning(text: str) -> Iterator[None]:
    with pytest.warns(CacheWarning, match=text) as found:
        yield
    assert len(found) == 1


def test_entries_come_back(kept: Store, folder: Path) -> None:
    assert kept.load(KEY) is None
    kept.save(KEY, b"contents")
    kept.save(OTHER, b"")
    assert (kept.load(KEY), kept.load(OTHER)) == (b"contents", b"")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


CALLS = ("mkdir", "open", "write", "close", "rename", "unlink", "scandir")


def killed(store: Store, monkeypatch: pytest.MonkeyPatch, at: int, *, before: bool) -> bool:
    """Save in a process that dies at one of its calls of the system; whether there were so many."""
    child = os.fork()
    if child == 0:
        count = 0

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count == at and before:
                    os._exit(9)
                result = call(*args, **kwargs)
                if count == at:
                    os._exit(9)
                return result

            return run

        try:
            for name in CALLS:
                monkeypatch.setattr(os, name, dying(getattr(os, name)))
            store.save(KEY, b"x" * 5000)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_at_any_moment_of_a_write(kept: Store, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    at, seen = 1, set()
    while killed(kept, monkeypatch, at, before=before):
        found = Store(kept.folder, kept.limit).load(KEY)
        seen.add(found)
        assert found in (None, b"x" * 5000)
        fresh = Store(kept.folder, kept.limit)
        fresh.save(KEY, b"x" * 5000)
        assert fresh.load(KEY) == b"x" * 5000
        shutil.rmtree(kept.folder)
        at += 1
    assert at > 5
    assert None in seen


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_writer_with_the_number_of_one_that_was_killed(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container each process has the number that the one before had."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    for _ in range(2):
        assert killed(kept, monkeypatch, 4, before=True)
    assert len(list(kept.folder.glob(".*"))) == 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_killed_writers_leave_takes_no_more_than_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Store(folder, 12_000)
    kept.save(OTHER, b"old")
    for _ in range(5):
        assert killed(kept, monkeypatch, 4, before=True)
    assert sum(path.stat().st_size for path in folder.glob(".*")) > kept.limit
    kept.save(OTHER, b"new")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= kept.limit
    assert kept.load(OTHER) == b"new"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_killed_writer_leaves_is_deleted(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert killed(kept, monkeypatch, 4, before=True)
    (left,) = kept.folder.iterdir()
    assert left.name.startswith(".")
    assert kept.entries() == []
    os.utime(left, (0, 0))
    kept.save(OTHER, b"new")
    assert [path.name for path in kept.folder.iterdir()] == [OTHER]


def test_two_writers_of_one_key(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer comes in between any two calls of the first."""
    for name in CALLS:
        call = getattr(os, name)
        second = Store(kept.folder, kept.limit)
        inside = []

        def meeting(
            *args: Any, call: Any = call, second: Store = second, inside: list[int] = inside, **kwargs: Any
        ) -> Any:
            if not inside:
                inside.append(1)
                second.save(KEY, b"same")
                assert second.load(KEY) == b"same"
            return call(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, meeting)
            kept.save(KEY, b"same")
        assert kept.load(KEY) == b"same"
        assert [path.name for path in kept.folder.iterdir()] == [KEY]


def test_damaged_files_are_misses(kept: Store) -> None:
    kept.save(KEY, bytes(range(256)) * 3)
    path = kept.folder / KEY
    whole = path.read_bytes()
    bad = [whole[:size] for size in (0, 1, 16, 79, 80, 81, len(whole) - 1)]
    bad += [whole + b"\0", b"something else", b"\0" * len(whole)]
    for position in range(0, len(whole), 7):
        bad.append(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    for data in bad:
        path.write_bytes(data)
        with one_warning("damaged"):
            fresh = Store(kept.folder, kept.limit)
            assert fresh.load(KEY) is None
            assert fresh.load(KEY) is None  # and says nothing more
    kept.save(KEY, b"anew")
    assert Store(kept.folder, kept.limit).load(KEY) == b"anew"


def test_an_entry_under_the_key_of_another(kept: Store) -> None:
    kept.save(KEY, b"mine")
    shutil.copy(kept.folder / KEY, kept.folder / OTHER)
    with one_warning("damaged"):
        assert kept.load(OTHER) is None


def test_what_is_no_file(kept: Store, tmp_path: Path) -> None:
    kept.save(OTHER, b"real")
    makers: list[Callable[[Path], Any]] = [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to(kept.folder / OTHER),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(tmp_path / "nowhere"),
    ]
    for make in makers:
        make(kept.folder / KEY)
        fresh = Store(kept.folder, kept.limit)
        with one_warning("the cache is not used"):
            assert fresh.load(KEY) is None
            with contextlib.suppress(OSError):
                fresh.save(KEY, b"new")
        path = kept.folder / KEY
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


class Failing:
    """Calls of the system that fail as they do on a bad disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("name", ["mkdir", "open", "write", "rename", "scandir"])
@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EIO"])
def test_full_or_read_only(kept: Store, monkeypatch: pytest.MonkeyPatch, name: str, error: str) -> None:
    import errno

    with monkeypatch.context() as patch, one_warning("the cache is not used"):
        Failing(patch, name, getattr(errno, error))
        kept.save(KEY, b"contents")
        kept.save(OTHER, b"contents")
    monkeypatch.undo()
    left = list(kept.folder.iterdir()) if kept.folder.exists() else []
    assert [path for path in left if path.name.startswith(".")] == []
    fresh = Store(kept.folder, kept.limit)
    assert fresh.load(KEY) in (None, b"contents")


def test_disk_full_halfway(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(handle: int, data: Any) -> int:
        if len(data) < 1000:
            raise OSError(28, "No space left on device")
        return write(handle, data[: len(data) // 2])

    with monkeypatch.context() as patch, one_warning("No space"):
        patch.setattr(os, "write", half)
        kept.save(KEY, b"x" * 5000)
    assert list(kept.folder.iterdir()) == []
    kept.save(KEY, b"x" * 5000)
    assert kept.load(KEY) == b"x" * 5000


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (cache_store.SWITCH, cache_store.FOLDER, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(cache_store, "_homeless", [])
    with one_warning("no home"):
        assert cache_store.store() is None
        assert cache_store.store() is None


def test_home_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("", encoding="utf-8")
    with one_warning("the cache is not used"):
        store = Store(tmp_path / "home" / "tapegen", MB)
        store.save(KEY, b"x")
        store.save(KEY, b"x")
        assert store.load(KEY) is None


def test_times_do_not_matter(kept: Store) -> None:
    kept.save(KEY, b"contents")
    for when in (0, 2**33):
        os.utime(kept.folder / KEY, (when, when))
        assert kept.load(KEY) == b"contents"


def test_directory_deleted_while_running(kept: Store) -> None:
    kept.save(KEY, b"contents")
    shutil.rmtree(kept.folder.parent)
    assert kept.load(KEY) is None
    kept.save(KEY, b"contents")
    assert kept.load(KEY) == b"contents"


def test_size_is_bounded_and_the_least_used_goes_first(folder: Path) -> None:
    kept = Store(folder, 1000 * 100)
    keys = [key_of(str(k)) for k in range(12)]
    for k, key in enumerate(keys):
        kept.save(key, b"x" * 10_000)
        with contextlib.suppress(FileNotFoundError):
            os.utime(folder / key, (k, k))
        kept.load(keys[0])  # in use all the time
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert total <= 100_000
    assert kept.load(keys[0]) is not None
    assert kept.load(keys[-1]) is not None
    assert kept.load(keys[1]) is None


def test_an_entry_that_is_being_read_stays_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes room at the moment when the file is open and not yet read."""
    kept = Store(folder, 100_000)
    kept.save(KEY, b"x" * 60_000)
    opened = os.fdopen

    def pruned(*args: Any) -> Any:
        file = opened(*args)
        Store(folder, 100_000).save(OTHER, b"y" * 60_000)
        assert not (folder / KEY).exists()
        return file

    monkeypatch.setattr(os, "fdopen", pruned)
    assert kept.load(KEY) == b"x" * 60_000


def test_an_entry_larger_than_the_limit(folder: Path) -> None:
    kept = Store(folder, 10)
    kept.save(KEY, b"x" * 1000)
    assert kept.load(KEY) is not None
    kept.save(OTHER, b"x" * 1000)
    assert kept.load(KEY) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_directory_that_others_can_write(kept: Store, mode: int) -> None:
    kept.save(KEY, b"contents")
    kept.folder.chmod(mode)
    with one_warning("others can write"):
        fresh = Store(kept.folder, kept.limit)
        assert fresh.load(KEY) is None
        fresh.save(OTHER, b"contents")
    assert not (kept.folder / OTHER).exists()


def test_a_parent_that_others_can_write(tmp_path: Path) -> None:
    parent = tmp_path / "shared"
    parent.mkdir()
    parent.chmod(0o777)
    with one_warning("others can write into"):
        Store(parent / "tapegen", MB).save(KEY, b"contents")
    parent.chmod(0o1777)  # only owners rename here, as in /tmp
    Store(parent / "tapegen", MB).save(KEY, b"contents")


def test_a_parent_that_a_group_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tmp_path / "shared"
    parent.mkdir()
    parent.chmod(0o770)
    monkeypatch.setattr(cache_store, "_is_of_user_alone", lambda group: group != parent.stat().st_gid)
    with one_warning("others can write into"):
        Store(parent / "tapegen", MB).save(KEY, b"contents")
    monkeypatch.setattr(cache_store, "_is_of_user_alone", lambda group: group == parent.stat().st_gid)
    Store(parent / "tapegen", MB).save(KEY, b"contents")
    assert Store(parent / "tapegen", MB).load(KEY) == b"contents"


@pytest.mark.parametrize(
    ("name", "members", "primary", "alone"),
    [
        ("ada", [], 5, True),
        ("ada", ["ada"], 5, True),
        ("ada", ["ada", "eve"], 5, False),
        ("users", [], 5, False),
        ("ada", [], 6, False),
    ],
)
def test_groups_of_one_user(
    name: str, members: list[str], primary: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pwd.getpwuid", lambda user: SimpleNamespace(pw_name="ada", pw_gid=primary))
    monkeypatch.setattr("grp.getgrgid", lambda group: SimpleNamespace(gr_name=name, gr_mem=members))
    assert cache_store._is_of_user_alone.__wrapped__(5) is alone


def test_a_link_to_where_others_can_write(tmp_path: Path) -> None:
    (tmp_path / "shared" / "mine").mkdir(parents=True)
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "mine")
    with one_warning("others can write into"):
        Store(tmp_path / "link" / "tapegen", MB).save(KEY, b"contents")


def test_parents_are_made_for_the_user_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        kept = Store(tmp_path / "home" / "caches" / "tapegen", MB)
        kept.save(KEY, b"contents")
    finally:
        os.umask(old)
    assert kept.load(KEY) == b"contents"
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.folder.parents[:2]} == {0o700}


def test_warnings_that_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are raised as what they are, and the next call goes on; here that of machine code, inside of numba."""
    import tapegen as tg

    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(cache_store.SWITCH, "1")
    monkeypatch.setenv(cache_store.FOLDER, str(tmp_path / "file" / "tapegen"))
    monkeypatch.setattr("tapegen.backend.cache.derived_programs.store", lambda: None)
    gradient = tg.grad(lambda x: 3.25 * x * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        with pytest.raises(CacheWarning, match="the cache is not used"):
            gradient(2.0)
        assert gradient(2.0) == 13.0


def test_foreign_owners(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save(KEY, b"contents")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with one_warning("belongs to another user"):
        fresh = Store(kept.folder, kept.limit)
        assert fresh.load(KEY) is None
        fresh.save(OTHER, b"contents")


def test_a_file_that_others_can_write(kept: Store) -> None:
    kept.save(KEY, b"contents")
    (kept.folder / KEY).chmod(0o666)
    with one_warning("others can write it"):
        assert kept.load(KEY) is None


def test_the_directory_is_a_link(kept: Store, tmp_path: Path) -> None:
    kept.save(KEY, b"contents")
    (tmp_path / "link").symlink_to(kept.folder)
    with one_warning("no directory"):
        assert Store(tmp_path / "link", MB).load(KEY) is None


def test_the_command_shows_and_deletes(
    kept: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv(cache_store.FOLDER, str(kept.folder))
    assert main(["cache", "info"]) == 0
    assert "entries    0" in capsys.readouterr().out
    kept.save(KEY, b"x" * MB)
    (kept.folder / "not ours.txt").write_text("precious", encoding="utf-8")
    assert main(["cache", "info"]) == 0
    shown = capsys.readouterr().out
    assert "entries    1" in shown
    assert "1.0 MB of 512 MB" in shown
    assert main(["cache", "clear"]) == 0
    assert [path.name for path in kept.folder.iterdir()] == ["not ours.txt"]
    kept.folder.chmod(0o777)
    assert main(["cache", "clear"]) == 1
    assert "others can write into it" in capsys.readouterr().err


def test_warnings_name_the_line_of_the_user(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere" / "tapegen", MB)
    (tmp_path / "nowhere").write_text("", encoding="utf-8")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        store.save(KEY, b"")
    assert [each.filename for each in found] == [__file__]


@pytest.mark.parametrize("name", ["numpy", "numba", "llvmlite", "scipy", "sys"])
def test_versions_are_part_of_every_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    current = cache_store.base.__wrapped__
    before = current()
    assert current() == before
    monkeypatch.setattr(f"{name}.version" if name == "sys" else f"{name}.__version__", "0.1 of another day")
    assert current() != before
