"""What must hold after each operation of a storm, whatever was killed during it."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from identity.credentials import rfc3339
from identity.credentials.schedule import age_when_due
from identity.credentials.secret_tags import DELIVERED_AT, THUMBPRINT
from tests.engine.clients import bare_sign_in
from tests.engine.key_material import KeySearch, everything, vault_keys
from tests.engine.small_stack import documents, registered, registered_in_state
from tests.harness import LocalStack
from tests.storm.plan import Kind, Operation, Victim
from tests.storm.world import MOUNTED, SECRETS, Done, Thing, World

_BEGINS: Final = (b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN RSA PRIVATE KEY-----")
# The begin of a private key in PEM, and in base64 at each of the three places of a group that it may begin at.
_KEYS: Final = (*_BEGINS, *(base64.b64encode(bytes(shift) + begin)[4:-4] for begin in _BEGINS for shift in range(3)))
# An error names its cause or its fix: a killed process, a server without an answer, a lock, what exists already.
_CAUSES: Final = (
    r"was killed by signal 9|exited prematurely|idstack (recover|up|import)|Connection refused|does not answer|"
    r"it is too soon|unchanged: \w|is withdrawn|has not reached the vault|does the kubelet run|"
    r"rotate --force|set-attributes|which a hosted cluster of the stack|which no stack of this backend has|"
    r"nothing (more )?was deleted|everybody in the tenant can copy|pods may still sign in with|is locked by|"
    r"Azure ignores case|ended before it answered|the answer cannot be taken|its key (has )?leaked"
)
PUT_BACK: Final = "the state was truncated, and was replaced by that of"
"""What `idstack recover` prints of a copy that takes the state's place."""
# What puts right what somebody has edited or put back.
_WAY_OUT: Final = re.compile(r"idstack rotate --force|az keyvault secret set-attributes")
# What `sweep` knows by its owner id, beside the secrets of certificates.
_OWNED: Final = ("azuread:index/application:Application", "azure-native:managedidentity:UserAssignedIdentity")
_SECRET: Final = "idstack:index:CredentialSecret"
_WITHDRAWING: Final = (Kind.REVOKE, Kind.RESTORE, Kind.LAG)
_MADE_BY_PLUGINS: Final = {
    "namespaces": "Namespace",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "deployments": "Deployment",
    "secretproviderclasses": "SecretProviderClass",
    "azureclusteridentities": "AzureClusterIdentity",
}
_MOUNTED_WITHIN: Final = 60.0  # seconds


class BrokenError(AssertionError):
    """Something does not hold."""


def require_a_cause(done: Done, causes: str = _CAUSES) -> None:
    """A command that failed says one of the causes; none prints a trace."""
    require("Traceback (most recent call last)" not in done.printed, "a trace was printed", done.printed)
    require(
        done.code == 0 or bool(re.search(causes, done.printed, re.IGNORECASE)), "the error names no cause", done.printed
    )
    require(not any(key in done.printed.encode() for key in _KEYS), "a private key was printed", done.command)


def require_a_way_out(done: Done) -> None:
    """A command that met what somebody had edited or put back healed it, or refused it and named the way out."""
    require(done.code == 0 or bool(_WAY_OUT.search(done.printed)), "it names no way out", done.printed)


def broken_stages(doctor: Done) -> set[str]:
    """The stages in which `doctor` has found something."""
    return set(re.findall(r"^broken +([\w -]+):", doctor.printed, re.MULTILINE))


def require_untouched(before: Mapping[Thing, str], now: Mapping[Thing, str]) -> None:
    """Of what is in Azure, nothing came, went or changed."""
    changed = sorted(thing for thing in before.keys() | now.keys() if before.get(thing) != now.get(thing))
    require(not changed, "what the stack has was touched", changed)


def require_refused_for(done: Done, stack: str) -> None:
    """A command for a stack with this one's infraID was refused, and names this one."""
    is_named = f"which a hosted cluster of the stack {stack} has" in done.printed
    require(done.code != 0 and is_named, "it was not refused for whose infraID it is", done.printed)


def require_gone(world: World, stack: str) -> None:
    """Another stack was removed: it is none of the backend's, and has no configuration; the engine keeps its copies."""
    state = world.stack.state / f"pulumi/backend/.pulumi/stacks/idstack/{stack}.json"
    files = [file for file in (state, world.stack.root / f"Pulumi.{stack}.yaml") if file.exists()]
    require(not files, "the other stack is not gone", files)


def require_destroyed(world: World) -> None:
    """After the engine's own `destroy`: what the cloud had before is there, and of the stack its deleted secrets."""
    left = {kind for kind, _ in in_the_cloud(world.stack, world.seeded | world.made_by_pods)}
    require(left <= {"keyvault-secret"}, "the stack's resources are left", left)
    lost = world.seeded - world.stack.inventory()
    require(not lost, "what was there before the stack is gone", lost)


def require_nothing_left(world: World) -> None:
    """After `down`."""
    require(not world.stack.state.exists(), "the local cloud's files are left", world.stack.state)
    require(not world.left_behind(), "processes are left", world.left_behind())


def require_whole(world: World) -> None:
    """The state and the cloud are the same; what the vault has is current and signs in."""
    stack = world.stack
    state = in_the_state(stack)
    require(len(state) == len(set(state)), "the state has something twice", state)
    cloud = in_the_cloud(stack, world.seeded | world.made_by_pods)
    require(cloud == set(state), "orphans, or lost things", cloud ^ set(state))
    require_in_use(world)
    own = registered_in_state(stack)
    found = {application: ids for application, ids in registered(stack).items() if application in own}
    require(found == own, "registered certificates", (found, own))
    for identity, versions in world.secrets().items():
        require(not any(version["enabled"] for version in versions[:-2]), "old versions can be read", identity)
    require(not world.left_behind(), "a command's processes are left", world.left_behind())


def has_forgotten_certificates(world: World) -> bool:
    """Whether a certificate is registered that the state does not have."""
    own = registered_in_state(world.stack)
    return any(ids - own[application] for application, ids in registered(world.stack).items() if application in own)


def require_in_use(world: World) -> None:
    """What the vault has signs in, with one certificate or two of each application, however the last run ended."""
    own = registered_in_state(world.stack)
    found = {application: ids for application, ids in registered(world.stack).items() if application in own}
    require(all(0 < len(ids) <= 2 for ids in found.values()), "an application has one certificate or two", found)
    secrets = world.secrets()
    require(set(secrets) == set(SECRETS), "a credential is missing in the vault", set(secrets))
    for identity, document in world.documents().items():
        used = bare_sign_in(document)
        newest = secrets[identity][-1]["tags"][THUMBPRINT]
        require(used == newest, "the vault's tags name another certificate", identity)


def require_valid(world: World) -> None:
    """The vault's certificates are valid by the storm's clock."""
    valid = {
        identity
        for identity, document in world.documents().items()
        if rfc3339.parse(document["not_before"]) <= world.clock < rfc3339.parse(document["not_after"])
    }
    require(valid == set(SECRETS), "a day without a valid certificate", set(SECRETS) - valid)


def require_mounted(world: World) -> None:
    """Every replica of the pod mounts what the vault has now, as soon as the CSI driver has seen it."""
    deadline = time.monotonic() + _MOUNTED_WITHIN
    wanted = [world.secrets()[MOUNTED][-1]["tags"][THUMBPRINT]] * world.replicas
    while (found := world.mounted()) != wanted:
        require(time.monotonic() < deadline, "the pods mount something else than the vault has", (found, wanted))
        threading.Event().wait(0.1)


def require_no_key_in_clear(world: World) -> None:
    """No key of the vault is in what was printed or in any file; costs a second for each ten megabytes."""
    printed = {f"what command {number} printed": text for number, text in enumerate(world.printed)}
    places = KeySearch(vault_keys(world.stack)).places_in(everything(world.stack, printed))
    require(places == {}, "a private key is in clear", places)


class Things:
    """What carries the stack's owner id, which a stack of its name in another backend must leave alone."""

    def __init__(self, world: World) -> None:
        self._owner_id = world.stack.outputs["ownerId"]
        ids = {resource["id"].lower(): resource["type"] for resource in world.stack.resources() if "id" in resource}
        self._named = {id for id, type_token in ids.items() if type_token in _OWNED}
        # Not the copied documents of managed identities, which are no certificates of this program's.
        self._secrets = {
            id for id, type_token in ids.items() if type_token == _SECRET and id.endswith(tuple(SECRETS.values()))
        }

    def require_somebody_elses(self, swept: Iterable[Mapping[str, Any]], *, with_secrets: bool) -> None:
        """The other stack's sweep lists each of them, and nothing as its own; without a vault it sees no secret."""
        mine = [leftover["id"] for leftover in swept if leftover["ours"]]
        require(not mine, "it is thought to be another stack's", mine)
        foreign = {leftover["id"].lower() for leftover in swept if f"owner id {self._owner_id}," in leftover["notOurs"]}
        wanted = self._named | (self._secrets if with_secrets else set())
        require(wanted <= foreign, "it is not listed as somebody else's", wanted - foreign)

    def require_not_adopted(
        self, recovered: Done, before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
    ) -> None:
        """The other stack's recovery says whose they are, and its state has what it had."""
        require(f"owner id {self._owner_id}," in recovered.printed, "it does not say whose they are", recovered.printed)
        adopted = {resource["urn"] for resource in now} - {resource["urn"] for resource in before}
        require(not adopted, "another stack has adopted it", adopted)


class Credentials:
    """The certificates before an operation, which tell what it must and must not have changed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._before = _current(world)

    def leaked(self, operation: Operation) -> set[str]:
        """The certificate that the operation withdraws, if it withdraws one."""
        asked = operation.argument.partition("-")[0]
        return {self._before[asked][0]} if operation.kind in _WITHDRAWING else set()

    def require_as_expected(self, operation: Operation, *, was_undisturbed: bool, was_older: bool = False) -> None:
        """Compare with the certificates of now.

        `was_older`: the state was older than the last renewal for a while, so that another certificate was issued.
        """
        now = _current(self._world)
        asked = operation.argument.partition("-")[0]
        for identity, (thumbprint, delivered) in self._before.items():
            is_changed = now[identity][0] != thumbprint
            is_due = _is_due(self._world, identity, delivered)
            match operation.kind:
                case Kind.PUT_BACK | Kind.EDIT if identity == asked:
                    require(is_changed, "no other certificate took the place", identity)
                case Kind.RENEW | Kind.DAY | Kind.PUT_BACK | Kind.EDIT:
                    require(
                        is_changed == is_due or was_older, "a renewal renews what is due", (identity, self._before, now)
                    )
                case Kind.FAULT:
                    is_lost = operation.argument == "vault-answer"
                    require(is_lost or not is_changed, "a certificate changed under a fault", identity)
                case Kind.ROTATE | Kind.REVOKE | Kind.RESTORE | Kind.LAG if identity == asked:
                    require(is_changed or not was_undisturbed, "it was not rotated", identity)
                case _:
                    require(is_due or was_older or not is_changed, "a certificate changed for no reason", identity)
            # A loss of power may take the delivery along, after which there are two more.
            lost_power = operation.disturbance is not None and operation.disturbance.victim is Victim.MACHINE
            if is_changed and operation.kind in (Kind.RENEW, Kind.DAY) and not was_older and not lost_power:
                is_kept = thumbprint in registered_thumbprints(self._world)
                require(is_kept, "what pods still have was taken out", identity)


def require_withdrawn(world: World, leaked: set[str]) -> None:
    """No certificate that was withdrawn has come back, into Entra ID or the vault."""
    current = {thumbprint for thumbprint, _ in _current(world).values()}
    back = leaked & (registered_thumbprints(world) | current)
    require(not back, "a leaked certificate is registered or in the vault", back)


def is_renewal_due(world: World) -> bool:
    """Whether an `up` would renew a certificate now."""
    return any(_is_due(world, identity, delivered) for identity, (_, delivered) in _current(world).items())


def _is_due(world: World, identity: str, delivered: datetime) -> bool:
    life = world.stack.configuration("credentials")
    return delivered + age_when_due(life["lifetimeDays"], life["renewBeforeDays"], SECRETS[identity]) <= world.clock


def _current(world: World) -> dict[str, tuple[str, datetime]]:
    return {
        identity: (versions[-1]["tags"][THUMBPRINT], datetime.fromisoformat(versions[-1]["tags"][DELIVERED_AT]))
        for identity, versions in world.secrets().items()
    }


def registered_thumbprints(world: World) -> set[str]:
    """What the applications have registered, whatever a replica shows."""
    return {
        hashlib.sha1(base64.b64decode(key["certificate"]), usedforsecurity=False).hexdigest().upper()
        for document in documents(world.stack, "entra-application")
        for key in document["keys"]
        if key["removedAt"] is None
    }


def in_the_cloud(stack: LocalStack, before: set[Thing]) -> set[Thing]:
    """What the stack's plugins have made since the inventory `before`."""
    made = set()
    for kind, key in stack.inventory() - before:
        _, collection, name = key.split("/", 2) if kind == "kubernetes" else ("", "", "")
        if collection in _MADE_BY_PLUGINS:
            made.add((_MADE_BY_PLUGINS[collection], name.removeprefix("/")))
        elif kind in {"arm", "keyvault-secret", "entra-application", "entra-principal"}:
            made.add((kind, key))
    for document in documents(stack, "entra-application"):
        if ("entra-application", document["objectId"]) in made:
            # What was removed is remembered a while for the replicas that learn of it late.
            made |= {("certificate", key["keyId"]) for key in document["keys"] if key["removedAt"] is None}
    return made


def in_the_state(stack: LocalStack) -> list[Thing]:
    """The same as the state has it, twice if it is there twice."""
    return [thing for resource in stack.resources() for thing in _things(resource)]


def _things(resource: dict[str, Any]) -> Iterator[Thing]:
    token, found = resource["type"], resource.get("id", "")
    plugin, _, kind = token.partition(":")
    if plugin == "kubernetes":
        yield kind.rpartition(":")[2], found
    elif token == _SECRET:
        yield "keyvault-secret", "/".join(found.split("/")[8::2])
    elif plugin == "azure-native":
        yield "arm", found.lower()
        if kind == "managedidentity:UserAssignedIdentity":
            yield "entra-principal", resource["outputs"]["principalId"]
    elif plugin == "azuread":
        names = {"Application": "entra-application", "ServicePrincipal": "entra-principal"}
        yield names.get(kind.rpartition(":")[2], "certificate"), found.rpartition("/")[2]


def require(holds: bool, rule: str, found: Any) -> None:
    """Raise BrokenError with the rule and what was found in its place, unless it holds."""
    if not holds:
        raise BrokenError(f"{rule}: {found}")
