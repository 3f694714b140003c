"""One gradient, in a process of its own: `python -m tests.grown.again FILE WRT`."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import tapegen as tg
from tests.grown.program import load
from tests.grown.reference import real_leaves


def main(file: str, wrt: str) -> None:
    """Print the gradient."""
    warnings.simplefilter("ignore")
    loaded = load(Path(file).read_text(encoding="utf-8"))
    function = tg.differentiable(loaded.function, wrt=tuple(map(int, wrt.split(","))))
    try:
        gradient = function.grad(*loaded.arguments())
    except tg.TapegenError as error:
        print(type(error).__name__)
        return
    print(json.dumps([np.asarray(leaf, dtype=float).tolist() for leaf in real_leaves(gradient)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
