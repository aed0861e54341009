"""The tables of `status` and `up`.

On a wide screen each value has a column. On a narrow one several values share a column, one below the other. Words are
never broken, because users copy names, paths and permissions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from identity.credentials import rfc3339
from ops.outputs.rows import Row, TokenRow
from ops.world.azure import ManagedIdentityRow
from ops.world.cluster_state import MountedVersion
from ops.world.probes import ProbeResult, path_in_pod
from ops.world.seen import HostedClusterCondition

# The two steps in a probe's report.
_Step: TypeAlias = Literal["signIn", "proof"]
# One line of a table: its values by their headings, in order.
Line: TypeAlias = Mapping[str, Text]
# Columns from left to right, each with the headings of its values from top to bottom.
Layout: TypeAlias = Sequence[Sequence[str]]
_GAP: Final = 2
# Errors are wrapped here, between words: no proof call is longer, and a column of identities still fits within 80.
_LONGEST_LINE: Final = 58
_UNKNOWN: Final = "not known"
# The prefix of every service account's `<namespace>:<name>`.
_ACCOUNT: Final = "system:serviceaccount:"
_SOON_DAYS: Final = 14


def sign_ins(rows: Sequence[Row], mounts: Path, width: int) -> Table:
    """The table at the end of `up`: a line for each mount, the identity's name at its first; for `width` columns.

    `mounts` is the directory of the local kubelet's mounts, which is cut off from the paths.
    """
    return fitted([_sign_in(row, probe, mounts) for row in rows for probe in row.probes], width)


def tokens(rows: Sequence[TokenRow], mounts: Path, width: int) -> Table:
    lines = [
        {
            "cluster": Text(row.of.cluster),
            "identity": Text(row.of.row.field, "green" if row.probe.is_ready else "red"),
            "service account": Text(row.of.subject.removeprefix(_ACCOUNT)),
            "file": Text(_file(row.probe, mounts)),
            "sign-in": _outcome(row.probe, "signIn"),
            "proof call": _proof(row.probe),
        }
        for row in rows
    ]
    return fitted(lines, width)


def credentials(rows: Sequence[Row], now: datetime, width: int) -> Table:
    """The table of `status`, for `width` columns; with sign-in and proof call if the probes are reachable."""
    return fitted([_credential(row, now) for row in rows], width)


def with_caption(table: Table, caption: str) -> Table:
    """The table with a line below it that applies to every row."""
    table.caption = Text(f"\n{caption}", "")
    table.caption_justify = "left"
    return table


def titled(title: str, lines: Sequence[Mapping[str, str]], note: str, width: int) -> Group:
    """A table of plain text below its title and note; "none" without lines."""
    texts = [{name: Text(value) for name, value in line.items()} for line in lines]
    heading = Text(f"\n{title}{f' ({note})' if note else ''}", "bold")
    return Group(heading, fitted(texts, width) if lines else Text("none"))


def counted(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`, `3 identities`."""
    return f"{number} {noun if number == 1 else f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}"


def fitted(lines: Sequence[Line], width: int) -> Table:
    """The lines with a column for each value; on a narrow screen neighbours share columns, as few as necessary."""
    names = list(lines[0]) if lines else []
    widths = {name: max(map(_width, (Text(name), *(line[name] for line in lines)))) for name in names}

    def needed(layout: Layout) -> int:
        return sum(max(widths[name] for name in column) + _GAP for column in layout) - _GAP

    layouts = [_layout(names, heads) for number in range(len(names)) for heads in combinations(names[1:], number)]
    # Of those with cells of the same height, the one whose first columns are the fullest.
    layout = min(
        [layout for layout in layouts if needed(layout) <= width] or layouts[:1],
        key=lambda layout: (max(map(len, layout)), [-len(column) for column in layout]),
        default=[],
    )
    height = max(map(len, layout), default=0)
    table = Table(
        *(
            # Blank lines below, because rich aligns headers with the bottom line.
            Column(Text("\n".join([*column, *[""] * (height - len(column))])), width=needed([column]))
            for column in layout
        ),
        width=needed(layout),  # otherwise rich folds what is wider than the screen
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        leading=1 if height > 1 else 0,
    )
    for line in lines:
        table.add_row(*(Text("\n").join(line[name] for name in column if line[name]) for column in layout))
    return table


def _layout(names: Sequence[str], heads: Collection[str]) -> Layout:
    layout: list[list[str]] = [[]]
    for name in names:
        if name in heads:
            layout.append([])
        layout[-1].append(name)
    return layout


def _width(cell: Text) -> int:
    """The width of the cell with its lines wrapped at `_LONGEST_LINE`, between words."""
    longest_line = max(map(cell_len, cell.plain.splitlines()), default=0)
    longest_word = max(map(cell_len, cell.plain.split()), default=0)
    return max(longest_word, min(longest_line, _LONGEST_LINE))


def _sign_in(row: Row, probe: ProbeResult, mounts: Path) -> Line:
    is_first = probe is row.probes[0]
    not_after = probe.report["notAfter"] if probe.report else None
    return {
        "identity": Text(row.identity if is_first else "", "green" if row.is_green else "red"),
        "certificate expiry": _date(rfc3339.parse(not_after) if not_after else None),
        "SecretProviderClass": Text(row.secret_provider_class if is_first else ""),
        "file": Text(_file(probe, mounts)),
        "sign-in": _outcome(probe, "signIn"),
        "proof call": _proof(probe),
    }


def _credential(row: Row, now: datetime) -> Line:
    days_left = row.days_left(now)
    style = "" if days_left is None else "red" if days_left < 0 else "yellow" if days_left < _SOON_DAYS else "green"
    return {
        "cluster": Text(row.cluster),
        "identity": Text(row.identity),
        "secret": Text(row.secret),
        "SecretProviderClass": Text(row.secret_provider_class),
        "expiry": _date(row.not_after),
        "renew after": _date(row.renew_after),
        # Enough to tell certificates apart; the whole one would take a third of a screen.
        "thumbprint": Text((row.thumbprint or _UNKNOWN)[: len("thumbprint")]),
        "days left": Text(_UNKNOWN if days_left is None else str(days_left), style),
        **({"sign-in": _worst(row, "signIn"), "proof call": _worst(row, "proof")} if row.probes else {}),
    }


def _date(date: datetime | None) -> Text:
    return Text(date.strftime("%Y-%m-%d") if date else _UNKNOWN)


def _file(probe: ProbeResult, mounts: Path) -> str:
    return path_in_pod(Path((probe.report["credentialFile"] if probe.report else None) or _UNKNOWN), mounts)


def _outcome(probe: ProbeResult, step: _Step) -> Text:
    if probe.report is None:
        # Shown once, because there is no proof call without a sign-in.
        return Text((probe.problem or _UNKNOWN) if step == "signIn" else "", "red")
    outcome = probe.report[step]
    if outcome["ok"]:
        return Text("ok", "green")
    return Text(outcome["error"] or "not yet", "red")


def _proof(probe: ProbeResult) -> Text:
    if probe.report is None or not probe.report["proof"]["ok"]:
        return _outcome(probe, "proof")
    proof = probe.report["proof"]
    return Text(f"{proof['status']} {proof['action'] or ''}".rstrip(), "green")


def _worst(row: Row, step: _Step) -> Text:
    """The first failure among the mounts, or ok."""
    outcomes = [_outcome(probe, step) for probe in row.probes]
    return next((outcome for outcome in outcomes if outcome.plain != "ok"), Text("ok", "green"))


_STYLES: Final = {
    **{"current": "green", "old": "yellow", "not mounted": "red", "not known": ""},
    **{"exists": "green", "missing": "red", "replaced": "red"},
}


def managed_identities_table(rows: Sequence[ManagedIdentityRow], width: int) -> Table:
    """A line for each optional managed identity, for `width` columns; missing ones are red."""
    lines = [
        {
            "cluster": Text(row.cluster),
            "managed identity": Text(row.identity),
            "client id": Text(row.client_id),
            "role": Text(row.role),
            "in Azure": Text(row.state, _STYLES[row.state]),
            "federated credentials": Text(", ").join(
                Text.assemble(credential.name, " ", (credential.state, _STYLES[credential.state]))
                for credential in row.federated
            ),
        }
        for row in rows
    ]
    return fitted(lines, width)


def conditions_table(every: Sequence[HostedClusterCondition], width: int) -> Table:
    """The visible conditions of each HostedCluster, for `width` columns; unexpected ones are red."""
    lines = [
        {
            "cluster": Text(condition.cluster),
            "condition": Text(condition.type),
            "status": Text(condition.status, "green" if condition.is_expected else "red"),
            "reason": Text(condition.reason),
            "message": Text("" if condition.is_expected else condition.message),
        }
        for condition in every
        if condition.is_shown
    ]
    return fitted(lines, width)


def mounts_table(versions: Sequence[MountedVersion], width: int) -> Table:
    """A line for each pod and identity, for `width` columns; `state` compares the version with the vault's."""
    lines = [
        {
            "cluster": Text(mount.cluster),
            "identity": Text(mount.identity),
            "pod": Text(mount.pod),
            "mounted version": Text(mount.version),
            "state": Text(mount.state, _STYLES[mount.state]),
        }
        for mount in versions
    ]
    return fitted(lines, width)
