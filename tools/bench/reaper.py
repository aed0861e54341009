"""`python reaper.py <command>` runs a command and waits for all that it leaves behind, such as an engine's plugins.

Only what was waited for counts in the CPU time of a process. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h


def main() -> int:
    """Run the command; returns its exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    code = subprocess.call(sys.argv[1:])
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return code


if __name__ == "__main__":
    sys.exit(main())
