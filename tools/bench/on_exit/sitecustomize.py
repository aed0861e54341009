"""On PYTHONPATH: writes what the Pulumi program's own process cost when it ends; the engine's is another process."""

from __future__ import annotations

import atexit
import json
import os
import resource
import sys


def _report(file: str) -> None:
    # The language host runs the program of its directory (`.`), which no plugin process does.
    if "pulumi" in sys.modules and "pulumi.runtime.stack" in sys.modules and sys.argv[0] == ".":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with open(file, "w", encoding="utf-8") as output:  # noqa: PTH123 - pathlib is one more import to pay for
            json.dump({"user": usage.ru_utime, "system": usage.ru_stime, "peak": usage.ru_maxrss / 1024}, output)


if "BENCH_USAGE" in os.environ:
    atexit.register(_report, os.environ["BENCH_USAGE"])
