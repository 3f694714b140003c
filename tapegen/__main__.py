"""`python -m tapegen`."""

import sys

from tapegen.cli import main

sys.exit(main())
