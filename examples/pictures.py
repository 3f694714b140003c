"""Make the pictures of the pages: run each example and the tutorial, and keep a small copy of what they save.

Run it: `python examples/pictures.py` for all, or with names (`python examples/pictures.py heat tutorial`). The copies
in `docs/pictures/` are committed, so that the pages can be built and read without running anything.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

HERE = pathlib.Path(__file__).parent
DOCS = HERE.parent / "docs"
WIDTH = 900  # pixels
COLOURS = 128


def keep(picture: pathlib.Path, name: str) -> None:
    """A copy of a picture that is small enough to be committed."""
    full = Image.open(picture).convert("RGB")
    small = full.resize((WIDTH, round(full.height * WIDTH / full.width)), Image.Resampling.LANCZOS)
    small.quantize(COLOURS).save(DOCS / "pictures" / name, optimize=True)


def run_example(path: pathlib.Path) -> None:
    """Run an example, and keep what it has saved."""
    before = {picture: picture.stat().st_mtime_ns for picture in (HERE / "output").glob("*.png")}
    subprocess.run([sys.executable, str(path)], check=True)
    for picture in (HERE / "output").glob("*.png"):
        if picture.stat().st_mtime_ns != before.get(picture):
            keep(picture, picture.name)


def run_tutorial() -> None:
    """Run the blocks of the tutorial as one file, and keep its picture."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / "tutorial.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tutorial.py"
        path.write_text("\n".join(blocks), encoding="utf-8")
        subprocess.run([sys.executable, str(path)], check=True, cwd=folder)
        keep(pathlib.Path(folder) / "fit.png", "tutorial.png")


def main(names: list[str]) -> None:
    """Run what is named, or everything."""
    for path in sorted(HERE.glob("*.py")):
        if path.name != pathlib.Path(__file__).name and (not names or path.stem in names):
            run_example(path)
    if not names or "tutorial" in names:
        run_tutorial()


if __name__ == "__main__":
    main(sys.argv[1:])
