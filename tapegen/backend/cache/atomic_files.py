"""Atomic file writes: files appear complete or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def publish(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file: a reader sees the old one or the new one, and a failure leaves nothing behind.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        Its contents.
    mode : int, optional
        Its permissions; by default those that a new file gets.

    Raises
    ------
    OSError
        If it cannot be written, or if the path is not a regular file (a device, a directory).
    """
    if os.path.lexists(path) and not (path.is_file() or path.is_symlink()):
        raise OSError(errno.EEXIST, "this is no file", str(path))
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name[:32]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(fresh, _default_mode() if mode is None else mode)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _default_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


__all__ = ["publish"]
