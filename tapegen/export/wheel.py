"""Wheels (PEP 427) and source distributions (PEP 643) of a library.

This file is also the build backend of each source distribution (PEP 517), which contains a copy of it: it needs only
Python.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same contents give the same file
_BACKEND = "tapegen_backend"


def wheel(module: Path, directory: Path | None = None) -> Path:
    """Make a wheel of the output of `build`; pip installs it where NumPy is.

    Parameters
    ----------
    module : Path
        The Python module of the library.
    directory : Path, optional
        Where it is written; by default next to the module.

    Returns
    -------
    Path
        The wheel.  Its version is 0 and a number derived from the contents.
    """
    contents = _contents(module)
    name, version, platform = _identity(module, contents)
    tag = f"py3-none-{platform}"
    info = f"{name}-{version}.dist-info"
    contents[f"{info}/METADATA"] = _metadata(name, version, contents[f"{module.stem}.json"])
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tapegen\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    rows = [f"{path},sha256={_hash(data)},{len(data)}" for path, data in contents.items()]
    contents[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in contents.items():
            item = zipfile.ZipInfo(path, _EPOCH)
            item.external_attr = _mode(path) << 16
            item.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(item, data)
    return _written(directory or module.parent, f"{name}-{version}-{tag}.whl", made.getvalue())


def source_distribution(module: Path, directory: Path | None = None) -> Path:
    """Make a source distribution of the same: the library as it is, and the code that makes the wheel of it.

    Parameters and result are those of `wheel`.
    """
    contents = _contents(module)
    name, version, _ = _identity(module, contents)
    contents["PKG-INFO"] = _metadata(name, version, contents[f"{module.stem}.json"])
    contents["pyproject.toml"] = (
        f'[build-system]\nrequires = []\nbuild-backend = "{_BACKEND}"\nbackend-path = ["."]\n\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = ["numpy"]\n'
    ).encode()
    contents[f"{_BACKEND}.py"] = Path(__file__).read_bytes()
    made = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=made, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, data in contents.items():
            item = tarfile.TarInfo(f"{name}-{version}/{path}")
            item.size, item.mode = len(data), _mode(path)
            archive.addfile(item, io.BytesIO(data))
    return _written(directory or module.parent, f"{name}-{version}.tar.gz", made.getvalue())


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """The hook of PEP 517, in a source distribution."""
    return wheel(_module_here(), Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """The hook of PEP 517, in a source distribution."""
    return source_distribution(_module_here(), Path(sdist_directory)).name


def _module_here() -> Path:
    (library,) = Path(__file__).parent.glob("lib*.so")
    return library.with_name(f"{library.stem.removeprefix('lib')}.py")


def _contents(module: Path) -> dict[str, bytes]:
    """The files of a library by their names."""
    name = module.stem
    files = [module, module.with_name(f"lib{name}.so"), module.with_suffix(".h"), module.with_suffix(".json")]
    return {file.name: file.read_bytes() for file in files}


def _identity(module: Path, contents: dict[str, bytes]) -> tuple[str, str, str]:
    """Name, version and platform."""
    digest = hashlib.sha256(b"".join(contents.values())).hexdigest()
    platform = str(json.loads(contents[f"{module.stem}.json"])["platform"])
    name = module.stem.strip("_")  # no distribution begins or ends with one
    return name, f"0.{int(digest[:8], 16)}", platform.replace("-", "_").replace(".", "_")


def _metadata(name: str, version: str, description: bytes) -> bytes:
    lines = [f"{each['function']}({each['arguments']})" for each in json.loads(description)["functions"]]
    head = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\nSummary: Compiled derivatives\n"
    return (f"{head}Requires-Dist: numpy\n\n" + "\n".join(lines) + "\n").encode("ascii", "replace")


def _mode(path: str) -> int:
    return 0o755 if path.endswith(".so") else 0o644


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _written(directory: Path, name: str, data: bytes) -> Path:
    path = directory / name
    path.write_bytes(data)
    return path
