"""Identities with certificates as a stack's state has them, and the plan of their renewal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ops.renewal.guard import RenewedType
from tests.unit import cases
from tests.unit.ops.stacks import output

_STACK: Final = "urn:pulumi:dev::idstack"
_COMPONENT: Final = "idstack:azure:ControlPlaneIdentity"
_ENTRA: Final = f"{_COMPONENT}$idstack:azure:EntraApplication"
CLASS: Final = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"
_PARTS: Final = {
    "certificate": RenewedType.CERTIFICATE,
    "registration": RenewedType.REGISTRATION,
    "gate": RenewedType.GATE,
}
_TABLE: Final = cases.read(Path(__file__).with_name("renewal.yaml"), {})
SETTINGS: Final = _TABLE["settings"]
"""Names of the inputs that come from the configuration, or from what it names."""
LATER: Final = "2999-02-19T16:50:04Z"
SLOT: Final = {"generation": 1, "notBefore": "2026-01-31T09:25:15Z", "validDays": 90}
"""A slot of a schedule."""
_INPUTS: Final = {kind: _TABLE[kind.name.lower()] for kind in RenewedType}
SECRET, RENEWED_SECRET = _INPUTS[RenewedType.SECRET], _TABLE["renewed secret"]


@dataclass(frozen=True)
class Identity:
    """One identity by the name of its component, `<cluster>-<name>`."""

    name: str

    @property
    def schedule(self) -> str:
        """URN of the schedule."""
        return f"{_STACK}::{_ENTRA}${RenewedType.SCHEDULE}::{self.name}-entra-schedule"

    @property
    def secret(self) -> str:
        """URN of the vault secret."""
        return f"{_STACK}::{_COMPONENT}${RenewedType.SECRET}::{self.name}-credential-secret"

    @property
    def secret_provider_class(self) -> str:
        """URN of an object that depends on the secret."""
        return f"{_STACK}::{CLASS}::{self.name}-class"

    def of_slot(self, part: str, slot: str) -> str:
        """URN of a slot's `certificate`, `registration` or `gate`."""
        return f"{_STACK}::{_ENTRA}${_PARTS[part]}::{self.name}-entra-{part}-{slot}"

    def slot(self, slot: str) -> list[str]:
        """URNs of all of a slot."""
        return [self.of_slot(part, slot) for part in _PARTS]

    def resources(self) -> list[Any]:
        """All of them in the state."""
        slots = [
            resource(self.of_slot(part, slot), kind, inputs=_INPUTS[kind])
            for slot in "ab"
            for part, kind in _PARTS.items()
        ]
        cluster = f"{_STACK}::idstack:hypershift:HostedCluster::{self.name.partition('-')[0]}"
        component, entra = f"{_STACK}::{_COMPONENT}::{self.name}", f"{_STACK}::{_ENTRA}::{self.name}-entra"
        own = [resource(self.schedule, RenewedType.SCHEDULE, inputs=_INPUTS[RenewedType.SCHEDULE]), *slots]
        secret = resource(self.secret, RenewedType.SECRET, inputs=SECRET, depends_on=self.of_slot("gate", "a"))
        return [
            {**resource(component, _COMPONENT), "parent": cluster},
            {**resource(entra, "idstack:azure:EntraApplication"), "parent": component},
            *({**part, "parent": entra} for part in own),
            {**secret, "parent": component, "outputs": {"generation": "a1", "deliveredAt": SLOT["notBefore"]}},
            resource(self.secret_provider_class, CLASS, depends_on=self.secret),
        ]

    def renewal(self) -> list[Any]:
        """The steps of a renewal of slot b."""
        schedule = {"current": "b", "b": {**SLOT, "generation": 3}, "renewal": "slot b", "delivered": {"name": "a1"}}
        certificate = {"generation": 2, "notBefore": "2026-03-01T00:00:00Z"}
        registration = {"value": "another", "keyId": "another", "endDate": "2026-06-01T00:00:00Z"}
        gate = {"thumbprint": "BB", "registration": "another"}
        changes: list[tuple[str, str, Any, dict[str, Any]]] = [
            ("update", self.schedule, _INPUTS[RenewedType.SCHEDULE], schedule),
            ("replace", self.of_slot("certificate", "b"), _INPUTS[RenewedType.CERTIFICATE], certificate),
            ("replace", self.of_slot("registration", "b"), _INPUTS[RenewedType.REGISTRATION], registration),
            ("update", self.of_slot("gate", "b"), _INPUTS[RenewedType.GATE], gate),
            ("update", self.secret, SECRET, RENEWED_SECRET),
        ]
        return [step(operation, urn, before, {**before, **new}) for operation, urn, before, new in changes]


def outputs_of(*identities: Identity, **dates: str) -> dict[str, Any]:
    """The outputs of a stack that issues certificates for these identities, which end much later."""
    clusters: dict[str, Any] = {}
    for identity in identities:
        cluster, _, field = identity.name.partition("-")
        rows = clusters.setdefault(cluster, {"controlPlane": {}})["controlPlane"]
        rows[field] = output(f"managed-azure-{field}", f"{field}-{cluster}-json", **{"notAfter": LATER, **dates})
    return {"hostedClusters": clusters}


def resource(urn: str, kind: str = "", *, inputs: Any = None, depends_on: str | None = None) -> Any:
    """A resource of the state."""
    dependencies = [depends_on] if depends_on else []
    return {"urn": urn, "type": kind, "custom": True, "inputs": inputs or {}, "dependencies": dependencies}


def step(operation: str, urn: str, before: Any = None, inputs: Any = None) -> Any:
    """A step of a plan; without `before` the state has the old inputs, and without `inputs` none change."""
    old = {} if before is None else {"oldState": resource(urn, inputs=before)}
    new = {} if inputs is None else {"newState": resource(urn, inputs=inputs)}
    return {"op": operation, "urn": urn, **old, **new}
