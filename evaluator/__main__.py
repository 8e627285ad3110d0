"""``python -m evaluator``."""

import os
import sys

# One thread a process, set before NumPy is imported: cases run side by side already, and a fork must find no
# other thread.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from evaluator.cli import main  # noqa: E402

sys.exit(main())
