"""Messages between this process and its helper: eight bytes of length, then the bytes."""

from __future__ import annotations

import struct
from typing import IO

_LENGTH = struct.Struct("<Q")
_LARGEST = 2**31


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Write one message."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Read one message.

    Raises
    ------
    EOFError
        If the stream has ended.
    ValueError
        If this is no message.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > _LARGEST:
        raise ValueError("a message that is too long")
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if data is None or len(data) < count:
        raise EOFError
    return data


__all__ = ["read_frame", "write_frame"]
