"""The keys of a workload of the user's own: a Deployment in the control plane's namespace that mounts identities.

Single values follow Kubernetes' own validation (apimachinery `pkg/util/validation`, `pkg/api/resource`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field, StrictInt

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.settings.schema import types
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ValueSpec, form, integer, matching
from identity.similar import similar


def one_of(fields: tuple[str, ...], rule: str) -> ValueSpec:
    """The form of a word that has to be one of `fields`."""

    def check(name: str) -> str:
        if name not in fields:
            raise ValueError
        return name

    return ValueSpec(
        rule=rule,
        accepted=f"one of {enumerate_words(fields, last='or')}",
        blank=fields[0],
        check=check,
        guess=lambda text: similar(text, fields) or text,
    )


IdentityField = Annotated[str, one_of(tuple(row.field for row in CONTROL_PLANE), rule="identity-field")]
WorkloadIdentityField = Annotated[
    str, one_of(tuple(row.field for row in CONTROL_PLANE if row.workload), rule="workload-identity-field")
]
DataPlaneField = Annotated[str, one_of(tuple(row.field for row in DATA_PLANE), rule="data-plane-field")]
FederatedSuffix = Annotated[
    str,
    one_of(
        tuple(dict.fromkeys(subject.word for row in FEDERATED_IDENTITIES for subject in row.subjects)),
        rule="federated-suffix",
    ),
]
OptionalIdentityField = Annotated[str, one_of(tuple(row.field for row in OPTIONAL), rule="optional-identity")]


_PART: Final = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"


# Nothing is guessed: other objects may have these names already.
WorkloadName = Annotated[
    str, replace(types.label_spec("the name of a Deployment", "<name>", rule="workload-name"), guess=None)
]
ServiceAccountName = Annotated[
    str,
    replace(types.subdomain_spec("a ServiceAccount", "<service-account>", rule="service-account-name"), guess=None),
]
Word = Annotated[str, form("word")]
ResourceName = Annotated[str, replace(one_of(("cpu", "memory", "ephemeral-storage"), rule="resource-name"), guess=None)]
Quantity = Annotated[str, form("quantity")]
LabelName = Annotated[
    str, form("label-name", matching(rf"((?=[^/]{{1,253}}/){types.LABEL}(\.{types.LABEL})*/)?{_PART}"))
]
LabelValue = Annotated[str, form("label-value", matching(rf"({_PART})?"))]


class ResourceSettings(Model):
    """What a pod asks of its node, and what it may not exceed."""

    requests: dict[ResourceName, Quantity] = Field(
        default_factory=dict, description="What the pod requests of its node, by resource."
    )
    limits: dict[ResourceName, Quantity] = Field(
        default_factory=dict, description="What the pod may not exceed, by resource."
    )


class TolerationSettings(Model):
    """A taint that a pod tolerates, as Kubernetes spells it."""

    key: LabelName | None = Field(None, description="Key of the taint; without it every taint is tolerated.")
    operator: Literal["Equal", "Exists"] = Field("Equal", description="Whether the taint's value counts.")
    value: LabelValue | None = Field(None, description="Value of the taint, with `operator: Equal`.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint; every effect unless given."
    )
    toleration_seconds: Annotated[StrictInt, integer(0, 31_536_000, "seconds")] | None = Field(
        None, description="How long the pod stays, with `effect: NoExecute`; without a limit unless given."
    )


class WorkloadSettings(Model):
    """One workload. Its command finds each identity where the identity's own consumer finds it."""

    name: WorkloadName = Field(description="Name of the Deployment.")
    image: types.Image = Field(description="Container image of the workload.")
    command: Annotated[tuple[Word, ...], FilledIn("the image's own")] = Field(
        (), description="Command of the container."
    )
    args: Annotated[tuple[Word, ...], FilledIn("the image's own")] = Field((), description="Arguments of the command.")
    identities: tuple[IdentityField, ...] = Field(
        description="Identities that the workload mounts, each as in its own consumer's pod."
    )
    replicas: Annotated[StrictInt, integer(1, 100, "pods")] = Field(1, description="Number of pods.")
    resources: ResourceSettings = Field(ResourceSettings(), description="CPU, memory and storage of a pod.")
    service_account: ServiceAccountName | None = Field(
        None, description="ServiceAccount of the pods; without it no token is mounted."
    )
    node_selector: dict[LabelName, LabelValue] = Field(
        default_factory=dict, description="Labels that a node of its pods must have."
    )
    tolerations: tuple[TolerationSettings, ...] = Field((), description="Taints that its pods tolerate.")
