"""The names of identities in a configuration: those of the catalogue's rows and of their federated credentials."""

from __future__ import annotations

from typing import Annotated

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ValueSpec
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
