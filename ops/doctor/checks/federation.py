"""Whether Entra ID exchanges the token of each service account for one of its managed identity.

Entra ID compares the token with the issuer's keys, the identity, and issuer, subject and audience of its federated
credentials, which these checks read. The token is the hosted cluster's, and its pod exchanges it. On a local stack a
probe does, and reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from identity.credentials.openid_documents import DISCOVERY_PATH
from identity.naming import parse_arm_id
from ops.doctor.checks.check import Fault, Stage, fault, of_each, of_federated
from ops.world.expected import FederatedIdentity
from ops.world.seen import NotReadError, Part, SeenManagedIdentity, SeenPod, StackWorld, entry, known


@of_federated(Stage.FEDERATION, Part.ISSUERS)
def issuer(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether the issuer's documents are public, as Entra ID needs them."""
    issuer = identity.issuer
    if issuer is None or not (problem := entry(world.issuers, issuer.address).problem):
        return
    if issuer.is_ours:
        yield fault(world, "closed issuer of ours", address=issuer.address, problem=problem)
    else:
        yield fault(world, "closed issuer", address=issuer.address, problem=problem, path=DISCOVERY_PATH)


@of_federated(Stage.FEDERATION, Part.ISSUERS)
def published_key(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether the issuer publishes the known keys that sign the cluster's tokens."""
    issuer = identity.issuer
    if issuer is None:
        return
    published = entry(world.issuers, issuer.address)
    if published.problem:
        raise NotReadError(published.problem)
    missing = [key for key in issuer.keys if key not in published.keys]
    if missing or not published.keys:
        yield fault(
            world,
            "key not published by us" if issuer.is_ours else "key not published",
            address=issuer.address,
            keys=", ".join(published.keys) or "no RSA key",
            missing=", ".join(missing) or "the key that signs the tokens",
        )


@of_federated(Stage.FEDERATION, Part.MANAGED_IDENTITIES)
def managed_identity(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether Azure has the managed identity that the stack created."""
    managed, name = entry(world.managed_identities, identity.resource_id), parse_arm_id(identity.resource_id).name
    if managed is None:
        yield fault(world, "no managed identity", name=name)
    elif (actual := managed.client_id) != identity.client_id:
        yield fault(world, "another managed identity", name=name, actual=actual, expected=identity.client_id)


@of_federated(Stage.FEDERATION, Part.MANAGED_IDENTITIES)
def federated_credential(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether a federated credential trusts each service account, by any name."""
    managed = entry(world.managed_identities, identity.resource_id)
    if managed is None:
        raise NotReadError("there is no managed identity to have one")
    for own in identity.credentials:
        [audience] = own.audiences
        if not managed.trusts(own.issuer, own.subject, audience):
            code, other = _other(managed, own.subject, own.issuer)
            name, place = parse_arm_id(identity.resource_id).name, f"{own.subject} of {own.issuer}"
            yield fault(world, "no trust", code=code, name=name, place=place, audience=audience, other=other)


def _other(managed: SeenManagedIdentity, subject: str, issuer: str) -> tuple[str, str]:
    """The code of Entra ID's refusal, and the trusts instead. It compares issuer, subject and audience in turn."""
    of_issuer = [found for found in managed.credentials if found.issuer == issuer]
    if not of_issuer:
        issuers = ", ".join(dict.fromkeys(found.issuer for found in managed.credentials))
        return "AADSTS700211", f"; it trusts {issuers}" if issuers else ""
    of_subject = [audience for found in of_issuer if found.subject == subject for audience in found.audiences]
    if not of_subject:
        return "AADSTS700213", ""
    return "AADSTS700212", f"; there is one for {', '.join(of_subject)}"


def _probed(world: StackWorld) -> Iterator[FederatedIdentity]:
    """The identities whose service accounts have probes."""
    for identity in known(world.state).guests:
        with suppress(NotReadError):
            if _probes(world, identity):
                yield identity


def _probes(world: StackWorld, identity: FederatedIdentity) -> list[SeenPod]:
    pods = known(entry(world.control_planes, identity.cluster).pods)
    return [pod for pod in pods if pod.deployment in identity.probes]


of_probed = of_each(_probed)


@of_probed(Stage.FEDERATION, Part.REPORTS, Part.CONTROL_PLANES)
def exchange(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether each probe exchanges its token, and makes the call that the identity's role grants."""
    for pod in _probes(world, identity):
        if pod.is_ready:
            continue
        report = entry(entry(world.control_planes, identity.cluster).reports, pod.name)
        error = report.sign_in.error or report.proof.error or "it has not signed in yet"
        yield fault(world, "no exchange", pod=pod.name, error=error)
