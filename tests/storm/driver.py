"""Carries a storm out, keeps its log, and says how to have a failed one again."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from azure.core.exceptions import ClientAuthenticationError

from identity.credentials import rfc3339
from tests.engine.clients import Client, bare_sign_in
from tests.engine.held_faults import held
from tests.engine.other_stacks import in_azure
from tests.storm import model, tampering
from tests.storm.plan import TAMPERING, Disturbance, Kind, Meeting, Operation, Recovery, written
from tests.storm.world import PAUSE, Done, World

_SEARCHED_EVERY: Final = 25  # operations
# Of the command that a refusal prints.
_RIGHT_DATE: Final = re.compile(r"--not-before (\S+Z)`")


@dataclass
class Storm:
    """One run of a plan; `report` gets a line for each operation."""

    world: World
    clients: dict[str, Client]
    seed: int
    report: Callable[[str], None]
    log: list[Operation] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    is_up: bool = False
    _leaked: set[str] = field(default_factory=set)
    _is_older: bool = False
    """Whether a copy has taken the state's place since the last operation: it may be older than a renewal."""

    def run(self, plan: Sequence[Operation]) -> None:
        """Carry it out; an AssertionError has what does not hold, and the command that replays it."""
        for number, operation in enumerate(plan, start=1):
            self.log.append(operation)
            try:
                self._carry_out(operation, random.Random(f"{self.seed} {number}"))  # noqa: S311  # to be repeated
                if number % _SEARCHED_EVERY == 0 and self.is_up:
                    model.require_no_key_in_clear(self.world)
            except Exception as error:
                raise AssertionError(self._failure(error)) from error
        if self.is_up:
            model.require_no_key_in_clear(self.world)
            self._settle()

    def _carry_out(self, operation: Operation, chance: random.Random) -> None:
        if operation.kind in TAMPERING:
            self._withstand(operation)
            return
        if operation.meeting is not None:
            self._meet(operation, operation.meeting)
            return
        world, disturbance = self.world, operation.disturbance
        credentials = model.Credentials(world)
        command = world.command(operation)
        if operation.kind is Kind.FAULT:
            self._endure(operation, command, credentials)
            return
        if operation.kind is Kind.DAY:
            model.require_valid(world)
            if operation.argument == "lost" or not model.is_renewal_due(world):
                self.happened["days without a run"] += 1
                return
        done = world.run(*command, disturbance=disturbance, chance=chance)
        happened = done.happened or "undisturbed"
        took = f"{done.seconds:.0f} s, {done.writes} writes"
        self.report(f"{len(self.log)} {operation}: {happened}, code {done.code} ({took})")
        self.happened[happened.partition(":")[0]] += 1
        # A power loss ends the command, too.
        if not done.happened.startswith("power lost"):
            model.require_a_cause(done)
        if not done.happened:
            model.require(done.code == 0, "an undisturbed command failed", done.printed)
        if done.code != 0 or done.happened:
            assert disturbance is not None
            self._recover(operation, command, done, disturbance)
        self._require(operation, credentials, done)

    def _withstand(self, operation: Operation) -> None:
        """What somebody does behind the stack's back, and what puts it right."""
        world = self.world
        credentials, used = model.Credentials(world), world.documents()
        identity, _, how = operation.argument.partition("-")
        self.report(f"{len(self.log)} {operation}")
        self.happened["tampered with"] += 1
        match operation.kind:
            case Kind.LAG:
                with tampering.late_reads(world, len(self.log)):
                    self._must(*world.command(operation))
            case Kind.RESTORE:
                backup = str(world.stack.root / "backup.json")
                self._must("backup", "--output", backup)
                self._must(*world.command(operation))
                tampering.lose_the_backend(world)
                self._must("restore", backup)
                self._must("recover")
                self._is_older = True
            case Kind.PLANT:
                self._find_a_planted(identity)
            case Kind.LOSE:
                tampering.lose(world, identity, how)
                self._must(*world.command(Operation(Kind.SWEEP)))  # leaves what pods use
                if self._run(*world.command(operation)).code != 0:
                    self._recover_without_a_schedule()
                bare_sign_in(used[identity])
            case Kind.CASE:
                self._write_in_capitals()
            case Kind.NEIGHBOUR:
                self._meet_a_neighbour()
            case Kind.TWIN:
                self._meet_a_twin(is_up=operation.argument == "up")
            case _:
                with Client(lambda: bare_sign_in(used[identity]), pause=PAUSE) as pods:
                    if operation.kind is Kind.EDIT:
                        tampering.edit(world, identity, how)
                    else:
                        tampering.put_back(world, identity, with_tags=not how)
                    self._renew_or_force(operation, identity)
                model.require(not pods.refusals, "what pods have was refused", pods.refusals[-1:])
                bare_sign_in(used[identity])
        self._require(operation, credentials, Done((), 0, ""))

    def _endure(self, operation: Operation, command: tuple[str, ...], credentials: model.Credentials) -> None:
        """A day with a fault: the renewal says what failed, and pods sign in with what they have."""
        world = self.world
        fault, says = tampering.FAULTS[operation.argument]
        with held(world.stack, fault(world.stack)):
            done = world.run(*command)
        self.report(f"{len(self.log)} {operation}: code {done.code} ({done.seconds:.0f} s)")
        self.happened["days with a fault"] += 1
        model.require(done.code != 0, "it succeeded under a fault", done.printed)
        model.require_a_cause(done, says)
        if operation.argument == "entra":
            for client in self.clients.values():
                client.await_sign_ins(1)
                client.refusals.clear()
        self._require_no_refusal(operation)
        model.require_valid(world)
        model.require_in_use(world)
        model.require_mounted(world)
        credentials.require_as_expected(operation, was_undisturbed=True)

    def _meet(self, operation: Operation, meeting: Meeting) -> None:
        """Two commands at once: whatever came of them, pods sign in, nothing is green over what is broken, and one
        `recover` is enough.
        """
        world = self.world
        credentials, used = model.Credentials(world), world.documents()
        commands = world.command(operation), world.command(meeting.other)
        dones = world.meet(meeting, *commands)
        for done in dones:
            self.report(f"{len(self.log)} {operation}: {done.happened}, {done.command[0]}: code {done.code}")
            model.require_a_cause(done)
        self.happened["met"] += 1
        self._require_no_refusal(operation)
        if Kind.DOWN in (operation.kind, meeting.other.kind):
            if world.stack.state.exists() and self._run("down").code != 0:
                self._must("recover", "--no-up")
                self._must("down")
            self.is_up = False
            model.require_nothing_left(world)
            return
        model.require_in_use(world)
        for document in used.values():
            bare_sign_in(document)
        # Nothing is broken but for the pods of HyperShift, which is not there.
        if not model.broken_stages(world.run("doctor")) <= {"volume"}:
            self._must("recover")
        [asked, *_] = [word.argument for word in (operation, meeting.other) if word.kind is Kind.ROTATE] or [""]
        self._require(Operation(Kind.ROTATE, asked) if asked else Operation(Kind.UP), credentials, dones[0])

    def _find_a_planted(self, identity: str) -> None:
        """Nobody else's application becomes the stack's."""
        with tampering.planted(self.world, identity) as path:
            found = self._run("recover")
            model.require(found.code != 0 and path in found.printed, "it is not refused by its name", found.printed)
            model.require(path not in self.world.stack.checkpoint.read_text(), "it was adopted", path)
        self._recover_without_a_schedule()

    def _recover_without_a_schedule(self) -> None:
        """It goes on at the latest after the overlap: until then pods may use what a new certificate would withdraw."""
        if self._run("recover").code != 0:
            self._must(*self.world.command(Operation(Kind.SWEEP)))
            self._must("recover")

    def _write_in_capitals(self) -> None:
        """A resource group in another letter case is refused, and costs nothing."""
        world, before = self.world, in_azure(self.world.stack)
        with world.stack.configured(resourceGroup=world.stack.configuration("resourceGroup").upper()):
            model.require(self._run("up").code != 0, "it is not refused", "up")
            self._run("renew")
            self._run("recover", "--no-up")
            self._run("sweep", "--yes")
            model.require_untouched(before, in_azure(world.stack))

    def _meet_a_neighbour(self) -> None:
        """A stack with this one's infraID is refused, and leaves nothing behind."""
        world, before = self.world, in_azure(self.world.stack)
        with tampering.neighbour(world) as name:
            for command in ("up", "recover"):
                model.require_refused_for(self._run(command, "--stack", name), world.stack.name)
        model.require_untouched(before, in_azure(world.stack))
        model.require_gone(world, name)

    def _meet_a_twin(self, *, is_up: bool) -> None:
        """A stack of this name in another backend takes nothing of this one for its own."""
        world, before = self.world, in_azure(self.world.stack)
        things = model.Things(world)
        with tampering.twin(world, is_up=is_up):
            empty = world.stack.resources()
            printed = self._run("sweep", "--yes", "--json").printed
            # A line for each thing that it deletes would follow.
            swept, _ = json.JSONDecoder().raw_decode(printed, printed.index("{"))
            things.require_somebody_elses(swept["leftovers"], with_secrets=is_up)
            recovered = self._run("recover", "--no-up")
            things.require_not_adopted(recovered, empty, world.stack.resources())
        model.require_untouched(before, in_azure(world.stack))

    def _renew_or_force(self, operation: Operation, identity: str) -> None:
        """A renewal heals what was edited or put back, or refuses it in words and leaves it alone."""
        before = len(self.world.secrets()[identity])
        try:
            in_vault = bare_sign_in(self.world.documents()[identity])
        except ClientAuthenticationError:
            in_vault = ""  # it was withdrawn before it was put back
        done = self._run(*self.world.command(operation))
        model.require_a_way_out(done)
        is_registered = in_vault in {"", *model.registered_thumbprints(self.world)}
        model.require(is_registered, "what new pods have from the vault was taken out", in_vault)
        if done.code == 0:
            return
        model.require(len(self.world.secrets()[identity]) == before, "it was refused, and written", done.printed)
        if right := _RIGHT_DATE.search(done.printed):
            tampering.correct(self.world, identity, rfc3339.parse(right[1]))
        else:
            self._must("rotate", "--identity", identity, "--force")
        self._must("renew")

    def _recover(self, operation: Operation, command: tuple[str, ...], done: Done, disturbance: Disturbance) -> None:
        """What a person does who does, or does not, know of `idstack recover`."""
        down = operation.kind is Kind.DOWN
        recover = ("recover", *(("--no-up",) if down else ()))
        scaling = operation.kind is Kind.SCALE
        # The scaling is no command of the program: `up` starts the local cloud that it needs.
        up_instead = scaling or (disturbance.recovery is Recovery.UP and not down)
        failed = done.code != 0
        if up_instead or disturbance.recovery is not Recovery.RECOVER or (down and not failed):
            again = self._run(*(("up",) if up_instead else command))
            failed = again.code != 0
            if not failed and not up_instead:
                return
        is_refused = False
        if failed:
            self._require_no_refusal(operation)
            is_refused = self._run(*recover).code != 0
            # The certificates may be out of Entra ID, and the state does not know who took them.
            model.require(not is_refused or operation.argument.endswith("-now"), "it did not recover", recover)
        if down and disturbance.moment:
            self._must("pulumi", "--", "destroy", "--yes", "--skip-preview")
            model.require_destroyed(self.world)
        if down or scaling or operation.kind is Kind.REVOKE:
            self._must(*command)
        if is_refused:
            self._must(*recover)
        if down and failed:
            # The recovery brings back the secrets of certificates that had been deleted with their applications.
            for client in self.clients.values():
                client.refusals.clear()

    def _must(self, *command: str) -> None:
        done = self._run(*command)
        model.require(done.code == 0, f"`.venv/bin/idstack {' '.join(command)}` failed", done.printed)

    def _run(self, *command: str) -> Done:
        done = self.world.run(*command)
        self.report(f"    {' '.join(command)}: code {done.code}")
        model.require_a_cause(done)
        self._is_older |= model.PUT_BACK in done.printed
        return done

    def _require(self, operation: Operation, credentials: model.Credentials, done: Done) -> None:
        self.is_up = operation.kind is not Kind.DOWN
        self._require_no_refusal(operation)
        if not self.is_up:
            model.require_nothing_left(self.world)
            return
        if done.happened:
            self._settle()
        was_older, self._is_older = self._is_older, False
        # Of a local cloud whose disk lost a removal, unlike Azure.
        if done.happened.startswith("power lost"):
            was_older |= model.has_forgotten_certificates(self.world)
        if was_older:
            # After the overlap, within which pods may use what a state has forgotten.
            self._must(*self.world.command(Operation(Kind.SWEEP)))
        model.require_whole(self.world)
        self.world.ensure_pod()
        model.require_mounted(self.world)
        credentials.require_as_expected(operation, was_undisturbed=not done.happened, was_older=was_older)
        self._leaked |= credentials.leaked(operation)
        model.require_withdrawn(self.world, self._leaked)

    def _settle(self) -> None:
        """A rotation lets time pass, and leaves alone what fell due meanwhile."""
        if model.is_renewal_due(self.world):
            self._must("renew")
        self._must("up", "--expect-no-changes")

    def _require_no_refusal(self, operation: Operation) -> None:
        """Nobody was refused, unless every certificate was taken out of use on purpose, or an old one put back, or the
        application is gone for a while.
        """
        for identity, client in self.clients.items():
            refusals, client.refusals[:] = list(client.refusals), []
            is_put_back = operation.kind in (Kind.PUT_BACK, Kind.PLANT) and operation.argument.startswith(identity)
            if not operation.argument.endswith("-now") and not is_put_back:
                model.require(not refusals, f"what the vault had for {identity} was refused", refusals)

    def _failure(self, error: Exception) -> str:
        return (
            f"operation {len(self.log)} of the storm with seed {self.seed}, {self.log[-1]}: {error}\n\n"
            f"the local cloud's log:\n{self.world.daemon_log()}\n\n"
            f'again: make storm SEED={self.seed} PLAN="{written(self.log)}"'
        )

    def summary(self) -> str:
        """How many operations went undisturbed, and how many kills of each kind there were."""
        counted = ", ".join(f"{number} {what}" for what, number in sorted(self.happened.items()))
        return f"storm with seed {self.seed}: {len(self.log)} operations; {counted}"
