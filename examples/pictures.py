"""Make the pictures of docs/gallery.md: run each example, and keep a small copy of what it saves.

Run it: `python examples/pictures.py` for all, or with names of examples (`python examples/pictures.py heat nile`).  The
copies in `docs/pictures/` are committed, so that the pages can be built and read without running anything.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

from PIL import Image

HERE = pathlib.Path(__file__).parent
WIDTH = 900  # pixels
COLOURS = 128


def main(names: list[str]) -> None:
    """Run the examples, all but this one if none is named; write what has changed."""
    target = HERE.parent / "docs" / "pictures"
    target.mkdir(exist_ok=True)
    for path in sorted(HERE.glob("*.py")):
        if path.name == pathlib.Path(__file__).name or (names and path.stem not in names):
            continue
        before = {picture: picture.stat().st_mtime_ns for picture in (HERE / "output").glob("*.png")}
        subprocess.run([sys.executable, str(path)], check=True)
        for picture in (HERE / "output").glob("*.png"):
            if picture.stat().st_mtime_ns != before.get(picture):
                full = Image.open(picture).convert("RGB")
                small = full.resize((WIDTH, round(full.height * WIDTH / full.width)), Image.Resampling.LANCZOS)
                small.quantize(COLOURS).save(target / picture.name, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
