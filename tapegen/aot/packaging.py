"""A library as a wheel: the module, the library and the header, in the format of PEP 427."""

from __future__ import annotations

import base64
import hashlib
import json
import sysconfig
import zipfile
from pathlib import Path

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same contents give the same file


def wheel(module: Path) -> Path:
    """Make a wheel of what `build` has made, beside it; pip installs it where NumPy is.

    Parameters
    ----------
    module : Path
        The Python module of the library.

    Returns
    -------
    Path
        The wheel.  Its version is 0 and a number that the contents decide.
    """
    name = module.stem
    files = [module, module.with_name(f"lib{name}.so"), module.with_suffix(".h"), module.with_suffix(".json")]
    contents = {file.name: file.read_bytes() for file in files}
    about = json.loads(contents[f"{name}.json"])
    digest = hashlib.sha256(b"".join(contents.values())).hexdigest()
    version = f"0.{int(digest[:8], 16)}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    lines = [f"{each['function']}({each['arguments']})" for each in about["functions"]]
    info = f"{name}-{version}.dist-info"
    contents[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: Compiled derivatives\n"
        f"Requires-Dist: numpy\n\n" + "\n".join(lines) + "\n"
    ).encode("ascii", "replace")
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tapegen\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    rows = [f"{path},sha256={_hash(data)},{len(data)}" for path, data in contents.items()]
    contents[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    made = module.with_name(f"{name}-{version}-{tag}.whl")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in contents.items():
            item = zipfile.ZipInfo(path, _EPOCH)
            item.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            item.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(item, data)
    return made


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
