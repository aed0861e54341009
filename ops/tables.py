"""The tables of `status` and `up`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from ops.probes import Probe
from ops.rows import Row

_UNKNOWN = "not known"
_SOON_DAYS = 14


def sign_ins(rows: Sequence[Row], mounts: Path) -> Table:
    """What `up` ends with: a line for each mount, an identity's name on its first."""
    table = _table("identity", "SecretProviderClass", "file", "certificate expiry", "sign-in", "proof call")
    for row in rows:
        for probe in row.probes:
            is_first = probe is row.probes[0]
            name = Text(row.identity, style="green" if row.is_green else "red") if is_first else Text()
            table.add_row(
                name,
                row.secret_provider_class if is_first else "",
                _file(probe, mounts),
                _reported(probe, "notAfter"),
                _outcome(probe, "signIn"),
                _proof(probe),
            )
    return table


def credentials(rows: Sequence[Row], now: datetime) -> Table:
    """What `status` shows of any stack; sign-in and proof call only where probes can be reached."""
    is_live = any(row.probes for row in rows)
    live = ("sign-in", "proof call") if is_live else ()
    table = _table("cluster", "identity", "secret", "SecretProviderClass", "expiry", "renew after", "days left", *live)
    for row in rows:
        left = row.days_left(now)
        style = "" if left is None else "red" if left < 0 else "yellow" if left < _SOON_DAYS else "green"
        table.add_row(
            row.cluster,
            row.identity,
            row.secret,
            row.secret_provider_class,
            _date(row.not_after),
            _date(row.renew_after),
            Text(_UNKNOWN if left is None else str(left), style),
            *([_worst(row, "signIn"), _worst(row, "proof")] if is_live else []),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _date(date: datetime | None) -> str:
    return date.strftime("%Y-%m-%d") if date else _UNKNOWN


def _reported(probe: Probe, key: str) -> str:
    return (probe.report[key] if probe.report else None) or _UNKNOWN


def _file(probe: Probe, mounts: Path) -> str:
    """The path in the pod: below the mounts directory it follows the pod's namespace and workload."""
    path = Path(_reported(probe, "credentialFile"))
    for root in (mounts, mounts.resolve()):
        if path.is_relative_to(root):
            return str(Path("/", *path.relative_to(root).parts[2:]))
    return str(path)


def _outcome(probe: Probe, step: str) -> Text:
    if probe.report is None:
        return Text(probe.problem or _UNKNOWN, "red")
    outcome = probe.report[step]
    if outcome["ok"]:
        return Text("ok", "green")
    return Text(outcome["error"] or "not yet", "red")


def _proof(probe: Probe) -> Text:
    if probe.report is None or not probe.report["proof"]["ok"]:
        return _outcome(probe, "proof")
    proof = probe.report["proof"]
    return Text(f"{proof['status']} {proof['action'] or ''}".rstrip(), "green")


def _worst(row: Row, step: str) -> Text:
    """The first failure among the mounts, or ok."""
    outcomes = [_outcome(probe, step) for probe in row.probes]
    return next((each for each in outcomes if each.plain != "ok"), Text("ok", "green"))
