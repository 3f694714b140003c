"""Tests compile anew what they test, unless they are about the cache."""

import os

os.environ["TAPEGEN_CACHE"] = "0"
