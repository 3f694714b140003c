"""Measurements of speed and memory.

They run on one core: threads of BLAS would help one side of a ratio only.  Must be set before NumPy is imported.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["TAPEGEN_BACKGROUND"] = "0"  # what is measured is machine code
