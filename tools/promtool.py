"""Prometheus' own promtool on rules, their tests and the dashboard: `python -m tools.promtool`, part of `make lint`.

promtool is built from the pinned module in tools/promtool, once for each state of its pin. It parses every rule,
template and test as a Prometheus server does, and evaluates the rules on the tests' series.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools import golang
from tools.steps import ROOT, ProcessError, SetupError, run

MONITORING: Final = ROOT / "examples/monitoring"
RULES: Final = "rules.yaml"
TESTS: Final = "rules_test.yaml"
DASHBOARD: Final = "dashboard.json"
_MODULE: Final = ROOT / "tools/promtool"
_REPOSITORY: Final = "github.com/prometheus/prometheus"
# Leaves out the service discoveries with the SDKs of their clouds, which rules do not need (plugins/ of Prometheus).
_TAGS: Final = "remove_all_sd"


def main(folder: Path = MONITORING) -> int:
    """Check a folder's rules, tests and dashboard; returns 1 if promtool refuses something or cannot be built."""
    try:
        for line in check(folder):
            print(f"promtool: {line}")
    except (ProcessError, SetupError) as error:
        print(f"promtool: {error}", file=sys.stderr)
        return 1
    return 0


def check(folder: Path) -> Iterator[str]:
    """What was checked, one line each.

    Raises ProcessError with what promtool said, SetupError if it cannot be built.
    """
    tool = golang.build_pinned("lint", _MODULE, _REPOSITORY, f"{_REPOSITORY}/cmd/promtool", tags=_TAGS)
    run([tool, "check", "rules", "--lint=all", "--lint-fatal", folder / RULES])
    run([tool, "test", "rules", folder / TESTS])
    yield f"{RULES} and its tests are in order"
    expressions = dict(dashboard_expressions(json.loads((folder / DASHBOARD).read_text(encoding="utf-8"))))
    # `check rules` parses an expression of a recording rule as the server parses a query; the name is the panel's.
    rules = [
        {"record": f"panel:{number}", "labels": {"panel": name}, "expr": expression}
        for number, (name, expression) in enumerate(expressions.items())
    ]
    with tempfile.TemporaryDirectory() as directory:
        # JSON is YAML.
        file = Path(directory) / DASHBOARD
        file.write_text(json.dumps({"groups": [{"name": DASHBOARD, "rules": rules}]}), encoding="utf-8")
        run([tool, "check", "rules", file])
    yield f"{len(rules)} expressions of {DASHBOARD} are PromQL"


def dashboard_expressions(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and number of the query, and its PromQL, of each query of a Grafana dashboard's panels."""
    for panel in dashboard["panels"]:
        for number, target in enumerate(panel["targets"], 1):
            yield f"{panel['title']} {number}", target["expr"]


if __name__ == "__main__":
    sys.exit(main())
