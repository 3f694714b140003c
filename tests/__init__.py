"""Tests compile anew what they test, and at once, unless they are about that."""

import os

os.environ["TAPEGEN_CACHE"] = "0"
os.environ.setdefault("TAPEGEN_BACKGROUND", "0")
