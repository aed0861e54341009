"""A year of a stack: what is planned for which day, what each day's run did, and the table of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from subprocess import CompletedProcess
from typing import Any, Final

from rich import box
from rich.table import Table

from identity.credentials import rfc3339
from tests.engine.clients import Client
from tests.engine.held_faults import entra_is_away, held
from tests.engine.rotations import Rotating

DAYS: Final = 365
# A certificate lives for two years and is renewed after 45 days, so that it is valid now, whenever in the year it was
# issued.
LIFE: Final = {"lifetimeDays": 730, "renewBeforeDays": 685}
# Days on which a renewal is due: identity/credentials/renewal_date.py puts them on the same days in every run.
LOST_WEEK: Final = range(168, 175)
OUTAGE: Final = range(261, 263)
LEAK: Final = 310
# On so many days `idstack renew` runs although nothing is due: what is skipped is what it would not have done.
_LOOK_EVERY: Final = 73
_NAMESPACE: Final = "clusters-hc1"
LEAKED: Final = "cloudProvider"


@dataclass(frozen=True)
class Day:
    """What came of a day with a run, or with something that happened.

    `renewed` counts identities, `failed` sign-ins by client, `restarted` pods; `said` is the last line of a failed run.
    """

    number: int
    what: str
    run: str
    code: int | None
    renewed: int
    failed: Mapping[str, int]
    restarted: int
    said: str


@dataclass
class Year:
    """The stack `rotating` on its first day, and the clients of one of its pods."""

    rotating: Rotating
    clients: Mapping[str, Client]
    days: list[Day] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    """Days on which nothing was due, and no engine ran."""

    def __post_init__(self) -> None:
        self._pods = self._running()
        self._generations = self._issued()
        self._failed = self._failures()

    def pass_by(self) -> Iterator[Day]:
        """Let every day pass; each item is one of `days`, as soon as it is over."""
        for number in range(1, DAYS + 1):
            self.rotating.pass_a_day()
            what, command = self._planned(number)
            if not what:
                self.skipped.append(number)
                continue
            away = held(self.rotating.stack, entra_is_away()) if number in OUTAGE else nullcontext()
            with away:
                done = self.rotating.stack.idstack(*command, check=False) if command else None
            for client in self.clients.values():
                client.await_sign_ins(1)
            self.days.append(self._day(number, what, command, done))
            yield self.days[-1]

    def _planned(self, number: int) -> tuple[str, Sequence[str]]:
        """What is special about the day, "" if it is nothing, and the arguments of its `idstack`."""
        due = self._due()
        if number in LOST_WEEK:
            return f"no run: the week is lost{_of_due(due)}", ()
        if number == LEAK:
            return f"the key of {LEAKED} leaked", ("rotate", "--identity", LEAKED, "--revoke")
        if number in OUTAGE:
            return f"Entra ID is away{_of_due(due)}", ("renew",)
        if due:
            return f"due: {', '.join(due)}", ("renew",)
        return ("nothing is due" if number % _LOOK_EVERY == 0 else ""), ("renew",)

    def _due(self) -> list[str]:
        """Identities whose renewal is due, by the date that the schedule has put into the outputs."""
        return [name for name, row in self._rows().items() if rfc3339.parse(row["renewAfter"]) <= self.rotating.clock]

    def _day(self, number: int, what: str, command: Sequence[str], done: CompletedProcess[str] | None) -> Day:
        pods, generations, failed = self._running(), self._issued(), self._failures()
        before = self._pods, self._generations, self._failed
        self._pods, self._generations, self._failed = pods, generations, failed
        printed = f"{done.stdout}{done.stderr}" if done else ""
        assert "Traceback" not in printed, printed
        lines = [line.strip(" │╭╮╰╯─") for line in printed.splitlines()]
        return Day(
            number=number,
            what=what,
            run=" ".join(("idstack", *command)) if command else "",
            code=done.returncode if done else None,
            renewed=sum(before[1].get(name) != generation for name, generation in generations.items()),
            failed={name: number - before[2][name] for name, number in failed.items()},
            restarted=sum(before[0].get(name) != pod for name, pod in pods.items()),
            said=next((line for line in reversed(lines) if line), "") if done and done.returncode else "",
        )

    def _rows(self) -> dict[str, Any]:
        """The identities whose certificates are issued here."""
        return {name: row for name, row in self.rotating.stack.control_plane.items() if row.get("renewAfter")}

    def _issued(self) -> dict[str, str]:
        return {name: str(row["thumbprint"]) for name, row in self._rows().items()}

    def _failures(self) -> dict[str, int]:
        return {name: len(client.failures) for name, client in self.clients.items()}

    def _running(self) -> dict[str, tuple[str, int]]:
        """Each pod by its name: its uid, and how often its containers were started again."""
        with self.rotating.stack.kubernetes("administrator") as http:
            pods = http.get(f"/api/v1/namespaces/{_NAMESPACE}/pods").raise_for_status().json()["items"]
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                sum(container["restartCount"] for container in pod["status"].get("containerStatuses", ())),
            )
            for pod in pods
        }


def _of_due(due: Sequence[str]) -> str:
    return f"; due: {', '.join(due)}" if due else ""


def require_a_good_year(days: Sequence[Day]) -> None:
    """Raises AssertionError unless each day did what it had to, and no client failed but by the leak and the outage."""
    assert [day.number for day in days if day.code] == list(OUTAGE), "every other run did all that was due"
    for day in days:
        assert day.number in (LEAK, *OUTAGE) or not any(day.failed.values()), f"a sign-in failed: {day}"
        assert not day.restarted, f"a pod was restarted: {day}"
        assert day.said or not day.code, "a run says what it could not do"
    away = [day for day in days if day.number in (*LOST_WEEK, *OUTAGE)]
    assert not any(day.renewed for day in away), "nothing can be renewed without a run, or without Entra ID"
    assert all(day.renewed for day in days if day.what.startswith("due: ")), "a renewal that was due happened"
    assert not any(day.renewed for day in days if day.what == "nothing is due"), "so nothing was skipped"


def table(days: Sequence[Day]) -> Table:
    """The year, a row for each day on which something happened."""
    made = Table(box=box.MARKDOWN)
    for heading in ("day", "what", "run", "code", "renewed", "failed sign-ins", "pods restarted", "the run says"):
        made.add_column(heading, no_wrap=True)
    for day in days:
        failed = ", ".join(f"{name} {number}" for name, number in day.failed.items() if number)
        code = "" if day.code is None else str(day.code)
        counted = (str(day.renewed), failed or "0", str(day.restarted))
        made.add_row(str(day.number), day.what, day.run, code, *counted, day.said)
    return made
