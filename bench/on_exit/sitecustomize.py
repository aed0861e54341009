"""Put on PYTHONPATH: when the Pulumi program ends, writes down what its process cost (the engine's is another one)."""

from __future__ import annotations

import atexit
import json
import os
import resource
import sys


def _report(file: str) -> None:
    # The language host runs the program of the directory it is in, so this is how its process is told from plugins'.
    if "pulumi" in sys.modules and "pulumi.runtime.stack" in sys.modules and sys.argv[0] == ".":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with open(file, "w", encoding="utf-8") as output:  # noqa: PTH123 - pathlib is one more import to pay for
            json.dump({"user": usage.ru_utime, "system": usage.ru_stime, "peak": usage.ru_maxrss / 1024}, output)


if "BENCH_USAGE" in os.environ:
    atexit.register(_report, os.environ["BENCH_USAGE"])
