"""Whether Entra ID exchanges the token of each service account for one of its managed identity.

It compares the token with what these checks look at: the issuer's keys, the identity, and issuer, subject and audience
of its federated credentials. The token itself is the hosted cluster's own, and the exchange its pod's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.credentials.openid_documents import DISCOVERY_PATH
from identity.naming import parse_arm_id
from ops.doctor.model.check import Check, Fault, Stage, of_federated
from ops.world.expected import FederatedIdentity
from ops.world.parts import Part
from ops.world.seen import NotReadError, entry
from ops.world.stack_world import SeenManagedIdentity, StackWorld


def _find_issuer(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether anybody gets the issuer's documents, as Entra ID has to."""
    issuer = identity.issuer
    if issuer is None or not (problem := entry(world.issuers, issuer.address).problem):
        return
    ours = f"{world.repair} writes its documents again; no policy may forbid public access to its storage account"
    theirs = f"let `curl {issuer.address}{DISCOVERY_PATH}` answer without a credential, with this issuer in `issuer`"
    yield Fault(
        evidence=f"Entra ID gets no keys of the issuer {issuer.address}: {problem}",
        fix=ours if issuer.is_ours else theirs,
    )


def _find_published_key(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether the issuer publishes the keys that sign the cluster's tokens, as far as the stack knows them."""
    issuer = identity.issuer
    if issuer is None:
        return
    seen = entry(world.issuers, issuer.address)
    if seen.problem:
        raise NotReadError(seen.problem)
    missing = [each for each in issuer.keys if each not in seen.keys]
    if missing or not seen.keys:
        theirs = "publish it in the issuer's JWKS, or name the key that the issuer publishes (serviceAccountSigningKey)"
        yield Fault(
            evidence=f"AADSTS7000272: the issuer {issuer.address} publishes {', '.join(seen.keys) or 'no RSA key'}, "
            f"and not {', '.join(missing) or 'the key that signs the tokens'}",
            fix=world.repair if issuer.is_ours else f"{theirs}, then {world.make('up')}",
        )


def _find_managed_identity(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether Azure has the managed identity that the stack made."""
    found, name = entry(world.managed_identities, identity.resource_id), parse_arm_id(identity.resource_id).name
    fix = f"{world.repair}; the HostedCluster needs the new client id (`idstack export hypershift`)"
    if found is None:
        yield Fault(evidence=f"there is no managed identity {name} in its resource group", fix=fix)
    elif found.client_id != identity.client_id:
        yield Fault(
            evidence=f"the managed identity {name} has the client id {found.client_id}; the stack made it with "
            f"{identity.client_id}",
            fix=fix,
        )


def _find_federated_credential(world: StackWorld, identity: FederatedIdentity) -> Iterator[Fault]:
    """Whether a federated credential trusts each service account, whatever its name is."""
    found = entry(world.managed_identities, identity.resource_id)
    if found is None:
        raise NotReadError("there is no managed identity to have one")
    for trust in identity.trusts:
        if trust not in found.trusts:
            code, other = _other(found, trust.subject, trust.issuer)
            evidence = (
                f"{code}: no federated credential of {parse_arm_id(identity.resource_id).name} trusts {trust.subject} "
                f"of {trust.issuer} for the audience {trust.audience}{other}"
            )
            yield Fault(evidence=evidence, fix=world.repair)


def _other(found: SeenManagedIdentity, subject: str, issuer: str) -> tuple[str, str]:
    """The code of Entra ID's refusal, and what there is instead. It compares issuer, subject and audience in turn."""
    of_issuer = [each for each in found.trusts if each.issuer == issuer]
    if not of_issuer:
        issuers = ", ".join(dict.fromkeys(each.issuer for each in found.trusts))
        return "AADSTS700211", f"; it trusts {issuers}" if issuers else ""
    of_subject = [each.audience for each in of_issuer if each.subject == subject]
    if not of_subject:
        return "AADSTS700213", ""
    return "AADSTS700212", f"; there is one for {', '.join(of_subject)}"


CHECKS: Final[tuple[Check, ...]] = (
    of_federated(Stage.FEDERATION, "issuer", (Part.ISSUERS,), _find_issuer),
    of_federated(Stage.FEDERATION, "published-key", (Part.ISSUERS,), _find_published_key),
    of_federated(Stage.FEDERATION, "managed-identity", (Part.MANAGED_IDENTITIES,), _find_managed_identity),
    of_federated(Stage.FEDERATION, "federated-credential", (Part.MANAGED_IDENTITIES,), _find_federated_credential),
)
