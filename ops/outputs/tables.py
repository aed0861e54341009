"""The tables of `status` and `up`.

On a wide screen each value has a column. On a narrow one several values share a column, one below the other. Words are
never broken, because users copy names, paths and permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Column, Table
from rich.text import Text

from ops.outputs.rows import Row, TokenRow
from ops.world.azure import ManagedIdentityRow
from ops.world.cluster_state import MountedVersion, ProbeResult
from ops.world.seen import HostedClusterCondition, ProbeStep

# One line of a table: its values by their headings, in order.
Line: TypeAlias = Mapping[str, Text | str]
# Columns from left to right, each with the headings of its values from top to bottom.
Layout: TypeAlias = Sequence[Sequence[str]]
_GAP: Final = 2
# Errors are wrapped here, between words: no proof call is longer, and a column of identities still fits within 80.
_LONGEST_LINE: Final = 58
_UNKNOWN: Final = "not known"
# The prefix of every service account's `<namespace>:<name>`.
_ACCOUNT: Final = "system:serviceaccount:"
_SOON_DAYS: Final = 14


@dataclass
class FittedTable:
    """A table with a column for each value; on a narrow screen neighbours share columns, as few as necessary.

    The caption is below it, and applies to every line.
    """

    lines: Sequence[Line]
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = list(self.lines[0]) if self.lines else []
        widths = {name: max(map(_width, (name, *(line[name] for line in self.lines)))) for name in names}

        def needed(layout: Layout) -> int:
            return sum(max(widths[name] for name in column) + _GAP for column in layout) - _GAP

        layouts = [_layout(names, heads) for number in range(len(names)) for heads in combinations(names[1:], number)]
        # Of those with cells of the same height, the one whose first columns are the fullest.
        layout = min(
            [layout for layout in layouts if needed(layout) <= options.max_width] or layouts[:1],
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
            caption=Text(f"\n{self.caption}", "") if self.caption else None,
            caption_justify="left",
        )
        for line in self.lines:
            table.add_row(
                *(Text("\n").join(Text.assemble(line[name]) for name in column if line[name]) for column in layout)
            )
        yield table


def sign_ins(rows: Sequence[Row]) -> FittedTable:
    """The table at the end of `up`: a line for each mount, the identity's name at its first."""
    return FittedTable([_sign_in(row, probe) for row in rows for probe in row.probes])


def tokens(rows: Sequence[TokenRow]) -> FittedTable:
    lines: list[Line] = [
        {
            "cluster": row.of.cluster,
            "identity": Text(row.of.row.field, "green" if row.probe.is_ready else "red"),
            "service account": row.of.subject.removeprefix(_ACCOUNT),
            **_proven(row.probe),
        }
        for row in rows
    ]
    return FittedTable(lines)


def credentials(rows: Sequence[Row], now: datetime, caption: str = "") -> FittedTable:
    """The table of `status`; with sign-in and proof call if the probes are reachable."""
    return FittedTable([_credential(row, now) for row in rows], caption)


def titled(title: str, lines: Sequence[Mapping[str, str]], note: str) -> Group:
    """A table of plain text below its title and note; "none" without lines."""
    heading = Text(f"\n{title}{f' ({note})' if note else ''}", "bold")
    return Group(heading, FittedTable(lines) if lines else Text("none"))


def counted(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`, `3 identities`."""
    return f"{number} {noun if number == 1 else f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}"


def _layout(names: Sequence[str], heads: Collection[str]) -> Layout:
    layout: list[list[str]] = [[]]
    for name in names:
        if name in heads:
            layout.append([])
        layout[-1].append(name)
    return layout


def _width(cell: Text | str) -> int:
    """The width of the cell with its lines wrapped at `_LONGEST_LINE`, between words."""
    longest_line = max(map(cell_len, str(cell).splitlines()), default=0)
    longest_word = max(map(cell_len, str(cell).split()), default=0)
    return max(longest_word, min(longest_line, _LONGEST_LINE))


def _sign_in(row: Row, probe: ProbeResult) -> Line:
    is_first = probe is row.probes[0]
    return {
        "identity": Text(row.identity if is_first else "", "green" if row.is_green else "red"),
        "certificate expiry": _date(probe.report.expires if probe.report else None),
        "SecretProviderClass": row.secret_provider_class if is_first else "",
        **_proven(probe),
    }


def _proven(probe: ProbeResult) -> Line:
    """What a probe reports: the credential's path in its pod, its sign-in and its proof call."""
    return {
        "file": (probe.report.file if probe.report else None) or _UNKNOWN,
        "sign-in": _sign_in_outcome(probe),
        "proof call": _proof(probe),
    }


def _credential(row: Row, now: datetime) -> Line:
    days_left = row.days_left(now)
    style = "" if days_left is None else "red" if days_left < 0 else "yellow" if days_left < _SOON_DAYS else "green"
    return {
        "cluster": row.cluster,
        "identity": row.identity,
        "secret": row.secret,
        "SecretProviderClass": row.secret_provider_class,
        "expiry": _date(row.not_after),
        "renew after": _date(row.renew_after),
        # Enough to tell certificates apart; the whole one would take a third of a screen.
        "thumbprint": (row.thumbprint or _UNKNOWN)[: len("thumbprint")],
        "days left": Text(_UNKNOWN if days_left is None else str(days_left), style),
        **({"sign-in": _worst(row, _sign_in_outcome), "proof call": _worst(row, _proof_outcome)} if row.probes else {}),
    }


def _date(date: datetime | None) -> Text:
    return Text(date.strftime("%Y-%m-%d") if date else _UNKNOWN)


def _sign_in_outcome(probe: ProbeResult) -> Text:
    return _outcome(probe.report.sign_in) if probe.report else Text(probe.problem or _UNKNOWN, "red")


def _proof_outcome(probe: ProbeResult) -> Text:
    # Without a report the problem is shown once, because there is no proof call without a sign-in.
    return _outcome(probe.report.proof) if probe.report else Text("", "red")


def _outcome(step: ProbeStep) -> Text:
    return Text("ok", "green") if step.ok else Text(step.error or "not yet", "red")


def _proof(probe: ProbeResult) -> Text:
    if probe.report is None or not probe.report.proof.ok:
        return _proof_outcome(probe)
    return Text(f"{probe.report.proof.status} {probe.report.proof.action or ''}".rstrip(), "green")


def _worst(row: Row, outcome_of: Callable[[ProbeResult], Text]) -> Text:
    """The first failure among the mounts, or ok."""
    return next((outcome for probe in row.probes if (outcome := outcome_of(probe)).plain != "ok"), Text("ok", "green"))


_STYLES: Final = {
    **{"current": "green", "old": "yellow", "not mounted": "red", "not known": ""},
    **{"exists": "green", "missing": "red", "replaced": "red"},
}


def managed_identities_table(rows: Sequence[ManagedIdentityRow]) -> FittedTable:
    """A line for each optional managed identity; missing ones are red."""
    lines: list[Line] = [
        {
            "cluster": row.cluster,
            "managed identity": row.identity,
            "client id": row.client_id,
            "role": row.role,
            "in Azure": Text(row.state, _STYLES[row.state]),
            "federated credentials": Text(", ").join(
                Text.assemble(credential.name, " ", (credential.state, _STYLES[credential.state]))
                for credential in row.federated
            ),
        }
        for row in rows
    ]
    return FittedTable(lines)


def conditions_table(every: Sequence[HostedClusterCondition]) -> FittedTable:
    """The visible conditions of each HostedCluster; unexpected ones are red."""
    lines: list[Line] = [
        {
            "cluster": condition.cluster,
            "condition": condition.type,
            "status": Text(condition.status, "green" if condition.is_expected else "red"),
            "reason": condition.reason,
            "message": "" if condition.is_expected else condition.message,
        }
        for condition in every
        if condition.is_shown
    ]
    return FittedTable(lines)


def mounts_table(versions: Sequence[MountedVersion]) -> FittedTable:
    """A line for each pod and identity; `state` compares the version with the vault's."""
    lines: list[Line] = [
        {
            "cluster": mount.cluster,
            "identity": mount.identity,
            "pod": mount.pod,
            "mounted version": mount.version,
            "state": Text(mount.state, _STYLES[mount.state]),
        }
        for mount in versions
    ]
    return FittedTable(lines)
