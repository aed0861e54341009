"""Two commands at once on one stack: in whatever order their requests arrive, what pods use stays, what was withdrawn
stays out, a neighbour keeps what it has, and the next run is not stuck.

The commands are the product's own parts: the whole sweep, a schedule's decision, refresh and withdrawal, the gate, the
delivery, the finders of a recovery. Of the engine there is the order of its steps, its lock, and the state that each
step writes.
"""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import cycle, takewhile
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from identity import resource_types
from identity.azure import client as requests
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError
from identity.azure.registered_certificates import registered_at, withdraw
from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, thumbprint
from identity.credentials.renewal_request import VARIABLE, RenewalRequest, write
from identity.credentials.secret_tags import THUMBPRINT
from identity.credentials.sign_in import SignInFailedError
from identity.plugin_schema import RegistrableCertificate
from identity.settings import Settings
from localcloud.testing.arm import VAULT, ArmWorld, world
from localcloud.testing.azure import ServicePrincipal
from ops.commands import sweep
from ops.recovery.orphans import Finders
from ops.stack.errors import CommandError
from ops.stack.state import StateResource
from ops.world.stacks import Contents, Stacks
from plugin import PluginError, Props
from provider import keys
from provider.certificate import CertificateResource
from provider.credential_secret import CredentialSecretResource
from provider.renewal_schedule import RenewalScheduleResource
from provider.sign_in_gate import SignInGateResource, require_registrable
from provider.vault_secrets import SecretPrefetch, VaultSecret
from tests.engine.small_stack import age_deliveries
from tests.unit.azure_world import azure, cloud, deployer
from tests.unit.ops.sweep.left_over_world import FOREIGN, OWNER_ID, application, register
from tests.unit.ops.sweep.left_over_world import settings as configuration
from tests.unit.provider.conftest import ADDRESS, SignIn, sign_in
from tests.unit.provider.schedule_world import PROGRAM
from tests.unit.provider.secret_world import inputs

__all__ = ["azure", "cloud", "configuration", "deployer", "sign_in", "world"]

_URN: Final = "urn:pulumi:dev::idstack::idstack:index:{}::hc1-ingress-{}"
_A_DAY: Final = timedelta(days=1.5)
_TURN: Final = threading.local()


def pause() -> None:
    """Before each request and each look at the state: the other command may go on here."""
    if pauses := getattr(_TURN, "pauses", None):
        pauses()


def interleaved(commands: Sequence[Callable[[], None]], lengths: Sequence[int]) -> None:
    """Run two commands of which one goes on at a time: in turn for so many steps, then each to its end."""
    turns, stopped = [threading.Semaphore(0) for _ in commands], SimpleQueue[None]()

    def work(number: int) -> None:
        def pauses() -> None:
            stopped.put(None)
            turns[number].acquire()

        _TURN.pauses = pauses
        turns[number].acquire()
        try:
            # A refusal says why; what it leaves is looked at.
            with suppress(AccessError, CommandError, PluginError):
                commands[number]()
        finally:
            going.remove(number)
            stopped.put(None)

    with ThreadPoolExecutor(len(commands)) as pool:
        going = {*range(len(commands))}
        works = [pool.submit(work, number) for number in going]
        for number, length in zip(cycle((0, 1)), [*lengths, *[sys.maxsize] * 3], strict=False):
            for _ in takewhile(lambda _: number in going, range(length)):  # noqa: B023  # at once
                turns[number].release()
                stopped.get(timeout=60)
        for ended in works:
            ended.result()


@dataclass
class Stack:
    """A stack with one identity, as its backend and Azure have it."""

    azure: AzureClient
    world: ArmWorld
    principal: ServicePrincipal
    secret: str
    state: dict[str, Any] = field(default_factory=dict)
    is_locked: bool = False
    writes: int = 0
    delivered: str | None = None
    """The newest certificate's name in the outputs of the last complete run."""
    revoked: set[str | None] = field(default_factory=set)
    now: datetime = field(default_factory=lambda: datetime.now(UTC) - 2 * _A_DAY)

    def up(self, request: RenewalRequest | None = None, *, until: str = "") -> None:
        """One run of the engine; `until`: it is killed once the state has this part."""
        with self._lock():
            if "application" not in self.state:
                made, _ = application(self.world, self.principal, "idstack:dev:hc1-ingress-entra")
                pause()
                self._write("application", {"id": f"/applications/{made.object_id}", "clientId": made.app_id})
            decided = self._decided(request)
            for slot in ("a", "b"):
                if slot in decided:
                    self._issue(slot, decided)
                    if f"registration-{slot}" == until:
                        return
            self._deliver(decided)
            for slot in ("a", "b"):
                if slot not in decided:
                    self._remove(slot)

    def rotate(self) -> None:
        """`rotate --revoke`: the certificate in use has leaked; it needs a schedule."""
        if "schedule" not in self.state:
            raise CommandError("it is not in the state")
        leaked = self.registered()
        self.up(RenewalRequest.FORCE)
        self.up(RenewalRequest.WITHDRAW)
        self.revoked |= leaked

    def recover(self) -> None:
        """Refresh, find what the state lost, and `up`."""
        with self._lock():
            if (old := self.state.get("schedule")) is not None:
                read = self._schedule.read(_URN.format("RenewalSchedule", "schedule"), "id", old, old)
                assert read is not None
                self._write("schedule", read.inputs)
            finders = Finders(self.azure, None, "", set(), VAULT)
            for slot in ("a", "b"):
                if certificate := self.state.get(f"certificate-{slot}"):
                    asked = {"applicationId": self._application, "startDate": certificate["notBefore"]}
                    id = finders.find(resource_types.REGISTERED_CERTIFICATE, asked | {"keyId": certificate["keyId"]})
                    self._write(f"registration-{slot}", {"keyId": certificate["keyId"]} if id else None)
            address = {**ADDRESS, "secretName": self.secret}
            if "secret" not in self.state and (id := finders.find(resource_types.CREDENTIAL_SECRET, address)):
                adopted = CredentialSecretResource().read("", f"{ADDRESS['cloud']}/{ADDRESS['tenantId']}{id}", {}, {})
                assert adopted is not None
                self._write("secret", {**adopted.inputs, **adopted.state, "id": id})
        self.up()

    def down(self) -> None:
        """`destroy`, in the engine's order."""
        with self._lock():
            if known := self.state.get("secret"):
                CredentialSecretResource().remove("", "", known, known)
                self._write("secret", None)
            for slot in ("a", "b"):
                self._remove(slot)
            self._write("schedule", None)
            if "application" in self.state:
                self.azure.delete_directory_object(self._application)
                self._write("application", None)

    def contents(self) -> Stacks:
        """What a sweep reads of the backend."""
        pause()
        parts = [{"type": "part", "urn": name, "outputs": value} for name, value in self.state.items()]
        owner = {"type": resource_types.STACK_OWNER, "urn": "owner", "id": OWNER_ID}
        return Stacks({"dev": Contents.of(cast("list[StateResource]", [owner, *parts]))}, {}, self.last_writes())

    def last_writes(self) -> Mapping[str, str]:
        """As `Engine.last_writes`."""
        pause()
        return {"dev": str(self.writes)}

    def locks(self) -> tuple[str, ...]:
        pause()
        return ("a run",) if self.is_locked else ()

    def shown(self) -> str:
        """The thumbprint of what the vault has."""
        current = VaultSecret(self.azure, VAULT, self.secret).metadata()
        return "" if current is None else current.tags[THUMBPRINT]

    def registered(self, path: str = "") -> set[str | None]:
        """The thumbprints at an application, by default the identity's."""
        own = self.state.get("application", {}).get("id")
        found = registered_at(self.azure, path or own) if path or own else None
        return {key.thumbprint for key in found or ()}

    @property
    def _application(self) -> str:
        return str(self.state["application"]["id"])

    @property
    def _schedule(self) -> RenewalScheduleResource:
        return RenewalScheduleResource(SecretPrefetch())

    @contextmanager
    def _lock(self) -> Iterator[None]:
        pause()
        if self.is_locked:
            raise CommandError("the stack is locked")
        self.is_locked = True
        keys._ISSUED.clear()  # of another process
        try:
            yield
        finally:
            self.is_locked = False

    def _write(self, name: str, part: Mapping[str, Any] | None) -> None:
        pause()
        self.writes += 1
        if part is None:
            self.state.pop(name, None)
        else:
            self.state[name] = part

    def _decided(self, request: RenewalRequest | None) -> Props:
        urn, old = _URN.format("RenewalSchedule", "schedule"), self.state.get("schedule")
        known = {"clientId": self.state["application"]["clientId"], "secretName": self.secret}
        if self.delivered is not None:
            known["delivered"] = self.delivered
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, write({} if request is None else {"hc1-ingress-schedule": request})[VARIABLE])
            checked = self._schedule.check(urn, old, {**PROGRAM, "lifetimeDays": 730, "renewBeforeDays": 729, **known})
            if checked.failures:
                raise CommandError(checked.failures[0].reason)
            if old is not None:
                self._schedule.update(urn, "id", old, old, checked.inputs, preview=False)
        self._write("schedule", checked.inputs)
        return checked.inputs

    def _issue(self, slot: str, decided: Props) -> None:
        issue, names = decided[slot], [f"{part}-{slot}" for part in ("certificate", "registration", "gate")]
        certificate, client = self.state.get(names[0]), self.state["application"]["clientId"]
        if certificate is None or any(certificate[name] != issue[name] for name in ("generation", "notBefore")):
            self._remove(slot)
            fixed = {"commonName": "hc1", "keySize": 2048, "lifetimeDays": 730, "applicationId": self._application}
            certificate = CertificateResource().create("", {**ADDRESS, **issue, **fixed}, preview=False).state
            self._write(names[0], certificate)
        dates = {name: str(certificate[name]) for name in ("thumbprint", "notBefore")}
        if names[1] not in self.state:
            require_registrable(cast(RegistrableCertificate, {**ADDRESS, "secretName": self.secret, **dates}))
            add(self.azure, self._application, certificate)
            self._write(names[1], {"keyId": certificate["keyId"]})
        if self.state.get(names[2], {}).get("thumbprint") != certificate["thumbprint"]:
            asked = {
                **ADDRESS,
                **dates,
                "secretName": self.secret,
                "authorityHost": "",
                "scope": "",
                "clientId": client,
            }
            asked |= dict.fromkeys(("successes", "settleSeconds", "timeoutSeconds"), 1)
            self._write(names[2], SignInGateResource().create("", asked, preview=False).state)

    def _remove(self, slot: str) -> None:
        certificate = self.state.get(f"certificate-{slot}")
        if registration := self.state.get(f"registration-{slot}"):
            withdraw(self.azure, self._application, registration["keyId"], may_be_last=True)
            self._write(f"registration-{slot}", None)
        if certificate is not None:
            CertificateResource().delete("", certificate["thumbprint"], certificate, certificate)
            self._write(f"certificate-{slot}", None)
            self._write(f"gate-{slot}", None)

    def _deliver(self, decided: Props) -> None:
        slot, known = decided["current"], self.state.get("secret")
        certificate, name = self.state[f"certificate-{slot}"], f"{slot}{decided[slot]['generation']}"
        if known is not None and known.get("thumbprint") == certificate["thumbprint"]:
            return
        dates = (rfc3339.parse(certificate[name]) for name in ("notBefore", "notAfter"))
        issued = IssuedCertificate(certificate["certificatePem"], "", certificate["thumbprint"], *dates)
        wanted = inputs(issued, name, secretName=self.secret, clientId=decided["clientId"], ownerId=OWNER_ID)
        if known is None:
            written = CredentialSecretResource().create("urn", wanted, preview=False).state
        else:
            written = CredentialSecretResource().update("urn", "id", known, known, wanted, preview=False)
        self._write("secret", {**wanted, **written, "id": f"{VAULT}/secrets/{self.secret}"})
        self.delivered = name


def add(azure: AzureClient, path: str, certificate: Mapping[str, Any]) -> None:
    """Register a certificate, as azuread does."""
    parsed = x509.load_pem_x509_certificate(certificate["certificatePem"].encode())
    key = base64.b64encode(parsed.public_bytes(Encoding.DER)).decode()
    added = {"type": "AsymmetricX509Cert", "usage": "Verify", "keyId": certificate["keyId"], "key": key}
    listed = (azure.directory_object(path) or {}).get("keyCredentials", [])
    azure.change_directory_object(path, {"keyCredentials": [*listed, added]})


LOST: Final = {
    "lost": ("registration-a", "gate-a", "certificate-a"),
    "lost schedule": ("schedule",),
    "lost gate": ("gate-b", "registration-b", "secret"),
}
"""What the state has no more, by the start of an example."""
COMMANDS: Final[Mapping[str, Callable[[Stack], None]]] = {
    "up": Stack.up,
    "rotate": Stack.rotate,
    "recover": Stack.recover,
    "down": Stack.down,
    "sweep": lambda _: sweep.sweep(yes=True, stack="dev"),
}


@dataclass
class Worlds:
    """A stack for one example after another, beside a neighbour's application with a certificate."""

    azure: AzureClient
    world: ArmWorld
    principal: ServicePrincipal
    patch: pytest.MonkeyPatch
    current: Stack = field(init=False)
    number: int = 0

    @contextmanager
    def stack(self, start: str) -> Iterator[Stack]:
        """Two certificates were delivered, the newer one before the overlap; or that and what a start says."""
        self.number += 1
        self.current = stack = Stack(self.azure, self.world, self.principal, f"ingress-{self.number}-json")
        for days in () if start == "new" else (2, 1):
            self.clock(stack.now - days * _A_DAY)
            stack.up()
        age_deliveries(self.world.store)
        self.clock(stack.now)
        if start == "killed":
            stack.up(until="registration-a")
        for part in LOST.get(start, ()):
            del stack.state[part]
        try:
            yield stack
        finally:
            stack.down()

    @contextmanager
    def neighbour(self) -> Iterator[str]:
        """The path of an application with a certificate, of a stack of this name in another backend."""
        made, _ = application(self.world, self.principal, "idstack:dev:hc1-ingress-entra", FOREIGN)
        register(self.azure, made)
        yield f"/applications/{made.object_id}"
        self.azure.delete_directory_object(f"/applications/{made.object_id}")

    def clock(self, moment: datetime) -> None:
        """Of schedules."""
        self.patch.setenv("IDSTACK_CLOCK", rfc3339.render(moment))


@dataclass(frozen=True)
class Backend:
    """As much of an engine as a sweep has."""

    of: Stack
    stack: str = "dev"
    beside: str = ""
    root: Path = Path()

    def last_writes(self) -> Mapping[str, str]:
        return self.of.last_writes()

    def outputs(self) -> Mapping[str, str]:
        return {"keyVaultId": VAULT}


@pytest.fixture
def worlds(
    azure: AzureClient,
    world: ArmWorld,
    deployer: ServicePrincipal,
    configuration: Settings,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> Worlds:
    sign_in(deployer)
    made, key, answer = Worlds(azure, world, deployer, monkeypatch), one_key(), requests._answer

    def waited(*arguments: Any) -> Any:
        pause()
        return answer(*arguments)

    def prove(authority: str, tenant: str, client: str, certificate: str, *_: Any, **__: Any) -> datetime:
        thumbprints = {key.thumbprint for key in registered_at(azure, f"/applications(appId='{client}')") or ()}
        if thumbprint(x509.load_pem_x509_certificate(certificate.encode())) not in thumbprints:
            raise SignInFailedError("AADSTS700027")
        return datetime.now(UTC)

    for place, replacement in {
        "identity.azure.client._answer": waited,
        "identity.azure.registered_certificates._BETWEEN_READS": 0,
        "identity.credentials.certificate.rsa.generate_private_key": lambda **_: key,
        "provider.certificate.pause": lambda _: None,
        "provider.renewal_schedule.pause": lambda _: None,
        "provider.sign_in_gate.prove": prove,
        "ops.commands.sweep.datetime": SimpleNamespace(now=lambda _: made.current.now),
        "ops.commands.sweep.Engine": lambda _: Backend(made.current),
        "ops.commands.sweep.settings_of": lambda _: configuration,
        "ops.commands.sweep.project_name": lambda _: "idstack",
        "ops.commands.sweep.deployer": lambda _: nullcontext(azure),
        "ops.commands.sweep.read_locks": lambda *_: made.current.locks(),
    }.items():
        monkeypatch.setattr(place, replacement)
    monkeypatch.setattr(Stacks, "read", staticmethod(lambda engine: engine.of.contents()))
    return made


@cache
def one_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.mark.nightly
@settings(
    max_examples=100,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    start=st.sampled_from(["new", "settled", "killed", *LOST]),
    pair=st.tuples(*[st.sampled_from([*COMMANDS])] * 2),
    lengths=st.lists(st.integers(1, 40), max_size=6),
)
@example(start="lost gate", pair=("sweep", "up"), lengths=[40])  # drawn by luck alone: what a sweep must not take
def test_two_commands_at_once_take_nothing_from_pods_and_block_nobody(
    worlds: Worlds, start: str, pair: tuple[str, str], lengths: list[int]
) -> None:
    with worlds.stack(start) as stack, worlds.neighbour() as theirs:
        used, had = stack.shown(), stack.registered(theirs)

        interleaved([partial(COMMANDS[name], stack) for name in pair], lengths)

        assert stack.registered(theirs) == had
        if "down" in pair:
            return
        registered = stack.registered()
        assert not stack.revoked & registered, "what was withdrawn is in"
        assert not used or used in registered or "rotate" in pair, "what pods use is out"
        assert not stack.shown() or stack.shown() in registered, "what new pods get is out"
        if start == "lost schedule" and "schedule" not in stack.state:
            stack.recover()  # it goes on with what pods use
        worlds.clock(stack.now + _A_DAY)
        stack.recover()
        assert used != stack.shown() in stack.registered(), "the next run is stuck"
        assert not stack.revoked & stack.registered(), "what was withdrawn is back"
