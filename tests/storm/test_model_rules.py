"""Each rule of the storm's model fails in a world in which it does not hold, and in no other."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import pytest

from identity.credentials import rfc3339
from identity.credentials.secret_tags import DELIVERED_AT, THUMBPRINT
from tests.storm import model
from tests.storm.model import BrokenError, Credentials, Things
from tests.storm.plan import Kind, Operation
from tests.storm.world import SECRETS, Done, World

_NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
_VAULT: Final = ("azure", "kv")
_POD: Final = ("kubernetes", "pod")
_SEEDED: Final = ("arm", "network")
_OWNED: Final = {
    "/applications/a1": "azuread:index/application:Application",
    "/identity/i1": "azure-native:managedidentity:UserAssignedIdentity",
    "/secrets/cloud-provider-hc1-json": "idstack:index:CredentialSecret",
}
_FOREIGN: Final = "no stack of this backend has its owner id mine, but one of another backend may"
_WHOSE: Final = "it has the owner id mine, which no stack of this backend has"


_CERTIFICATE: Final = b"certificate"
_USED: Final = hashlib.sha1(_CERTIFICATE, usedforsecurity=False).hexdigest().upper()


def _registration(removed: str | None) -> dict[str, Any]:
    return {"certificate": base64.b64encode(_CERTIFICATE).decode(), "removedAt": removed}


def version(thumbprint: str, *, delivered: datetime = _NOW, enabled: bool = True) -> dict[str, Any]:
    return {"tags": {THUMBPRINT: thumbprint, DELIVERED_AT: delivered.isoformat()}, "enabled": enabled}


@dataclass
class FakeWorld:
    """A stack in which every rule holds; its parts are what the model reads, each of which a test makes wrong."""

    state: Any = field(default_factory=lambda: [_VAULT])
    cloud: set[tuple[str, str]] = field(default_factory=lambda: {_VAULT})
    registered: dict[str, set[str]] = field(default_factory=lambda: {"app": {"k1"}, "foreign": {"k9"}})
    in_state: dict[str, set[str]] = field(default_factory=lambda: {"app": {"k1"}})
    versions: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {secret: [version(secret)] for secret in SECRETS}
    )
    signs_in_with: dict[str, Any] = field(default_factory=lambda: {secret: secret for secret in SECRETS})
    lost: set[tuple[str, str]] = field(default_factory=set)
    left: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    seeded: set[tuple[str, str]] = field(default_factory=lambda: {_SEEDED})
    made_by_pods: set[tuple[str, str]] = field(default_factory=lambda: {_POD})
    certificates: list[dict[str, Any]] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    searched: dict[str, str] = field(default_factory=dict)
    clock: datetime = _NOW
    replicas: int = 2
    mounts: list[str] = field(default_factory=lambda: ["cloudProvider"] * 2)
    root: Path = Path()
    outputs: dict[str, str] = field(default_factory=lambda: {"ownerId": "mine"})

    @property
    def stack(self) -> FakeWorld:
        return self

    def inventory(self) -> set[tuple[str, str]]:
        return {_SEEDED, _POD} - self.lost

    def configuration(self, key: str) -> dict[str, int]:
        assert key == "credentials"
        return {"lifetimeDays": 730, "renewBeforeDays": 729}

    def resources(self) -> list[dict[str, str]]:
        owned = [{"id": id, "type": type_token} for id, type_token in _OWNED.items()]
        copied = {"id": "/secrets/disk", "type": "idstack:index:CredentialSecret"}
        return [*owned, copied, {"id": "/role/r1", "type": "azure-native:authorization:RoleAssignment"}]

    def secrets(self) -> dict[str, list[dict[str, Any]]]:
        return self.versions

    def documents(self) -> dict[str, Any]:
        return self.signs_in_with

    def left_behind(self) -> list[str]:
        return self.left

    def mounted(self) -> list[str]:
        return self.mounts

    def as_world(self) -> World:
        return cast("World", self)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> FakeWorld:
    made = FakeWorld()

    def in_the_cloud(_: object, ignored: set[tuple[str, str]]) -> set[tuple[str, str]]:
        assert ignored == {_SEEDED, _POD}, "pods come and go, and what was seeded is not the stack's"
        return made.cloud

    class Search:
        def __init__(self, keys: object) -> None:
            assert keys == "keys"

        def places_in(self, texts: dict[str, str]) -> dict[str, str]:
            made.searched = texts
            return made.places

    replaced: dict[str, Any] = {
        "in_the_state": lambda _: made.state,
        "in_the_cloud": in_the_cloud,
        "registered": lambda _: made.registered,
        "registered_in_state": lambda _: made.in_state,
        "bare_sign_in": lambda document: document,
        "documents": lambda _, kind: [{"keys": made.certificates}] if kind == "entra-application" else [],
        "vault_keys": lambda _: "keys",
        "everything": lambda _, printed: printed,
        "KeySearch": Search,
    }
    for name, replacement in replaced.items():
        monkeypatch.setattr(model, name, replacement)
    return made


Check = Callable[[World], object]
Spoil = Callable[[FakeWorld], object]


def breaking(rule: str | None) -> AbstractContextManager[object]:
    """The block breaks a rule, or none."""
    return nullcontext() if rule is None else pytest.raises(BrokenError, match=rule)


def _lose_a_secret(world: FakeWorld) -> None:
    del world.versions["cloudProvider"]
    del world.signs_in_with["cloudProvider"]


def _old_version(world: FakeWorld, *, enabled: bool) -> None:
    world.versions["cloudProvider"][:0] = [version("older", enabled=enabled), version("before")]


def _certificates(world: FakeWorld, *keys: str) -> None:
    world.registered["app"] = world.in_state["app"] = set(keys)


def _destroyed(world: World) -> None:
    fake = cast("FakeWorld", world)
    fake.cloud = fake.cloud - {_VAULT} | {("keyvault-secret", "deleted")}
    model.require_destroyed(world)


def _withdrawn(world: World) -> None:
    model.require_withdrawn(world, {_USED})


def _no_key_in_clear(world: World) -> None:
    world.printed = ["first", "second"]
    model.require_no_key_in_clear(world)
    assert list(cast("FakeWorld", world).searched.values()) == world.printed, "what was printed is searched as well"


def _gone(world: World) -> None:
    model.require_gone(world, "local-hc2")


def _left(world: FakeWorld, file: str) -> None:
    (world.root / file).parent.mkdir(parents=True, exist_ok=True)
    (world.root / file).touch()


def _dates(begin: int, end: int) -> dict[str, str]:
    return {
        name: rfc3339.render(_NOW + timedelta(days=day)) for name, day in (("not_before", begin), ("not_after", end))
    }


def _valid_from_to(begin: int, end: int) -> Spoil:
    return lambda world: world.signs_in_with.update(cloudProvider=_dates(begin, end))


_STATE: Final = "state/pulumi/backend/.pulumi/stacks/idstack/local-hc2.json"
_REGISTERED: Final = "registered certificates"
_ONE_OR_TWO: Final = "an application has one certificate or two"
_ELSE: Final = "the pods mount something else"
_NO_DAY: Final = r"a day without a valid certificate: \{'cloudProvider'\}"
_BACK: Final = "a leaked certificate is registered or in the vault"


@pytest.mark.parametrize(
    ("holds", "spoil", "rule"),
    [
        (model.require_whole, lambda world: world.state.append(_VAULT), "the state has something twice"),
        (model.require_whole, lambda world: world.cloud.add(("azure", "orphan")), "orphans, or lost things"),
        (model.require_whole, lambda world: world.cloud.clear(), "orphans, or lost things"),
        (model.require_whole, lambda world: world.registered.update(app={"k1", "k2"}), _REGISTERED),
        (model.require_whole, lambda world: world.registered.pop("app"), _REGISTERED),
        (model.require_whole, lambda world: _certificates(world), _ONE_OR_TWO),
        (model.require_whole, lambda world: _certificates(world, "k1", "k2", "k3"), _ONE_OR_TWO),
        (model.require_whole, _lose_a_secret, "a credential is missing in the vault"),
        (
            model.require_whole,
            lambda world: world.signs_in_with.update(cloudProvider="x"),
            "tags name another certificate",
        ),
        (model.require_whole, lambda world: _old_version(world, enabled=True), "old versions can be read"),
        (model.require_whole, lambda world: world.left.append("pulumi up"), "a command's processes are left"),
        (model.require_mounted, lambda world: world.mounts.pop(), _ELSE),
        (model.require_mounted, lambda world: world.mounts.append("older"), _ELSE),
        (model.require_mounted, lambda world: world.mounts.append(""), _ELSE),
        (model.require_mounted, lambda world: world.mounts.clear(), _ELSE),
        (model.require_valid, _valid_from_to(1, 3), _NO_DAY),
        (model.require_valid, _valid_from_to(-3, -1), _NO_DAY),
        (model.require_valid, _valid_from_to(-3, 0), _NO_DAY),
        (_destroyed, lambda world: world.cloud.add(("arm", "identity")), "the stack's resources are left"),
        (_destroyed, lambda world: world.lost.add(_SEEDED), "what was there before the stack is gone"),
        (_withdrawn, lambda world: world.certificates.append(_registration(None)), _BACK),
        (_withdrawn, lambda world: world.versions.update(cloudProvider=[version(_USED)]), _BACK),
        (_no_key_in_clear, lambda world: world.places.update(log="key"), "a private key is in clear"),
        (model.require_nothing_left, lambda world: world.left.append("localcloud"), "processes are left"),
        (model.require_nothing_left, lambda world: world.state.mkdir(), "the local cloud's files are left"),
        (_gone, lambda world: _left(world, _STATE), "the other stack is not gone"),
        (_gone, lambda world: _left(world, "Pulumi.local-hc2.yaml"), "the other stack is not gone"),
    ],
)
def test_each_rule_holds_until_its_world_is_spoilt(
    world: FakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: Check, spoil: Spoil, rule: str
) -> None:
    monkeypatch.setattr(model, "_MOUNTED_WITHIN", 0)
    if holds in (model.require_nothing_left, _gone):
        world.root, world.state = tmp_path, tmp_path / "state"
    if holds is model.require_valid:
        world.signs_in_with = dict.fromkeys(SECRETS, _dates(0, 1))
    world.certificates = [_registration("2026-11-23T00:00:00Z")]
    holds(world.as_world())
    spoil(world)
    with pytest.raises(BrokenError, match=rule):
        holds(world.as_world())


def test_two_certificates_and_old_versions_that_are_disabled_are_whole(world: FakeWorld) -> None:
    _certificates(world, "k1", "k2")
    _old_version(world, enabled=False)
    model.require_whole(world.as_world())


@pytest.mark.parametrize(
    ("kind", "argument", "is_due", "is_changed", "undisturbed", "rule"),
    [
        (Kind.RENEW, "", True, False, True, "a renewal renews what is due"),
        (Kind.RENEW, "", False, True, True, "a renewal renews what is due"),
        (Kind.RENEW, "", True, True, True, None),
        (Kind.DAY, "", True, False, True, "a renewal renews what is due"),
        (Kind.FAULT, "vault", True, True, True, "a certificate changed under a fault"),
        (Kind.FAULT, "vault-answer", True, True, True, None),
        (Kind.ROTATE, "cloudProvider", False, False, True, "it was not rotated"),
        (Kind.ROTATE, "cloudProvider", False, False, False, None),
        (Kind.ROTATE, "cloudProvider", False, True, True, None),
        (Kind.ROTATE, "nodePoolManagement", False, True, True, "a certificate changed for no reason"),
        (Kind.REVOKE, "cloudProvider", False, False, True, "it was not rotated"),
        (Kind.REVOKE, "cloudProvider-now", False, False, True, "it was not rotated"),
        (Kind.EDIT, "cloudProvider-nbf", True, False, True, "no other certificate took the place"),
        (Kind.EDIT, "cloudProvider-nbf", False, True, True, None),
        (Kind.PUT_BACK, "nodePoolManagement-bare", True, False, True, "a renewal renews what is due"),
        (Kind.LAG, "cloudProvider", False, False, True, "it was not rotated"),
        (Kind.UP, "", False, True, True, "a certificate changed for no reason"),
        (Kind.UP, "", True, True, True, None),
        (Kind.UP, "", False, False, True, None),
    ],
)
def test_a_certificate_that_should_have_changed_or_not_is_found(
    world: FakeWorld, kind: Kind, argument: str, is_due: bool, is_changed: bool, undisturbed: bool, rule: str | None
) -> None:
    delivered = _NOW - timedelta(days=1) if is_due else _NOW
    world.versions = {"cloudProvider": [version(_USED, delivered=delivered)]}
    world.certificates = [_registration(None)]
    before = Credentials(world.as_world())
    if is_changed:
        world.versions["cloudProvider"] = [version("new")]

    with breaking(rule):
        before.require_as_expected(Operation(kind, argument), was_undisturbed=undisturbed)


@pytest.mark.parametrize("kind", [Kind.UP, Kind.RENEW])
def test_a_state_that_was_older_may_cost_another_certificate(world: FakeWorld, kind: Kind) -> None:
    before = Credentials(world.as_world())
    world.versions["cloudProvider"] = [version("new")]
    before.require_as_expected(Operation(kind), was_undisturbed=False, was_older=True)


def test_a_renewal_that_takes_out_what_pods_still_have_is_found(world: FakeWorld) -> None:
    world.versions = {"cloudProvider": [version(_USED, delivered=_NOW - timedelta(days=1))]}
    before = Credentials(world.as_world())
    world.versions["cloudProvider"] = [version("new")]
    world.certificates = [_registration("2026-11-23T00:00:00Z")]

    before.require_as_expected(Operation.parse("renew/machine@1/again")[0], was_undisturbed=False)
    with pytest.raises(BrokenError, match="what pods still have was taken out"):
        before.require_as_expected(Operation(Kind.RENEW), was_undisturbed=True)


@pytest.mark.parametrize("kind", Kind)
def test_what_leaked_is_what_is_withdrawn(world: FakeWorld, kind: Kind) -> None:
    withdrawn = {"cloudProvider"} if kind in (Kind.REVOKE, Kind.RESTORE, Kind.LAG) else set()
    assert Credentials(world.as_world()).leaked(Operation(kind, "cloudProvider-now")) == withdrawn


@pytest.mark.parametrize("now", [{}, {("arm", "role"): "b"}, {("arm", "role"): "a", ("arm", "another"): "c"}])
def test_what_another_stack_deletes_changes_or_makes_is_found(now: dict[tuple[str, str], str]) -> None:
    before = {("arm", "role"): "a"}
    model.require_untouched(before, dict(before))
    with pytest.raises(BrokenError, match="what the stack has was touched"):
        model.require_untouched(before, now)


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (0, 'infraID is "x", which a hosted cluster of the stack local has'),
        (1, 'infraID is "x", which a hosted cluster of the stack other has'),
        (1, "it is taken"),
    ],
)
def test_an_infra_id_that_is_not_refused_for_whose_it_is_is_found(code: int, printed: str) -> None:
    model.require_refused_for(Done(("up",), 1, "which a hosted cluster of the stack local has; accepted: "), "local")
    with pytest.raises(BrokenError, match="it was not refused for whose infraID it is"):
        model.require_refused_for(Done(("up",), code, printed), "local")


def _listed(*ids: str, not_ours: str | None = _FOREIGN) -> list[dict[str, Any]]:
    return [{"id": id_, "notOurs": not_ours, "ours": not_ours is None} for id_ in ids]


@pytest.mark.parametrize(
    ("swept", "with_secrets", "rule"),
    [
        (_listed(*_OWNED), True, None),
        (_listed("/Applications/A1", "/identity/i1"), False, None),
        (_listed("/applications/a1", "/identity/i1"), True, "it is not listed as somebody else's"),
        (_listed("/identity/i1", "/secrets/cloud-provider-hc1-json"), True, "it is not listed as somebody else's"),
        (_listed("/applications/a1"), False, "it is not listed as somebody else's"),
        (_listed(*_OWNED, not_ours="it has no owner id"), True, "it is not listed as somebody else's"),
        ([*_listed(*_OWNED), *_listed("/role/r1", not_ours=None)], True, "it is thought to be another stack's"),
    ],
)
def test_what_a_foreign_sweep_takes_for_its_own_or_overlooks_is_found(
    world: FakeWorld, swept: list[dict[str, Any]], with_secrets: bool, rule: str | None
) -> None:
    things = Things(world.as_world())
    with breaking(rule):
        things.require_somebody_elses(swept, with_secrets=with_secrets)


def test_what_a_foreign_recovery_adopts_or_does_not_explain_is_found(world: FakeWorld) -> None:
    things, stack, adopted = Things(world.as_world()), {"urn": "stack"}, {"urn": "application"}
    things.require_not_adopted(Done(("recover",), 1, _WHOSE), [stack], [stack])
    with pytest.raises(BrokenError, match="another stack has adopted it"):
        things.require_not_adopted(Done(("recover",), 0, _WHOSE), [stack], [stack, adopted])
    with pytest.raises(BrokenError, match="it does not say whose they are"):
        things.require_not_adopted(Done(("recover",), 1, "it is too soon"), [stack], [stack])


_KEY: Final = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ=="


@pytest.mark.parametrize(
    ("code", "printed", "broken"),
    [
        (1, "Traceback (most recent call last):\n  File ...", "a trace was printed"),
        (0, "Traceback (most recent call last):\n  File ...", "a trace was printed"),
        (1, "error: update failed", "the error names no cause"),
        (0, f"certificate: {_KEY}", "a private key was printed"),
        *(
            (0, base64.b64encode(f"{' ' * shift}{_KEY}".encode()).decode(), "a private key was printed")
            for shift in range(3)
        ),
    ],
)
def test_what_a_command_must_not_print_is_found(code: int, printed: str, broken: str) -> None:
    with pytest.raises(BrokenError, match=broken):
        model.require_a_cause(Done(("up",), code, printed))


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (0, "Resources:\n    196 unchanged"),
        (1, "error: `pulumi up` was killed by signal 9. `.venv/bin/idstack recover --stack local` unlocks the stack"),
        (0, "-----BEGIN CERTIFICATE-----"),
        (0, base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()),
    ],
)
def test_a_command_may_fail_if_it_says_why(code: int, printed: str) -> None:
    model.require_a_cause(Done(("up",), code, printed))


@pytest.mark.parametrize(
    "printed", ["`.venv/bin/idstack rotate --force` gets out", "`az keyvault secret set-attributes --id ...`"]
)
def test_what_was_tampered_with_may_be_refused_if_the_way_out_is_named(printed: str) -> None:
    model.require_a_way_out(Done(("renew",), 1, printed))
    model.require_a_way_out(Done(("renew",), 0, ""))
    with pytest.raises(BrokenError, match="it names no way out"):
        model.require_a_way_out(Done(("renew",), 1, "it is too soon"))
