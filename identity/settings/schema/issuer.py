"""The keys of a hosted cluster's OIDC issuer and of the key that signs the tokens of its service accounts."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field, StrictInt

from identity.settings.schema import types
from identity.settings.schema.base import Model
from identity.settings.schema.value_spec import ValueSpec, ascending, integer, matching

# One more than a rotation needs: the key that signs, the one before it, and the one after it.
_MOST_KEYS: Final = 3

IssuerName = Annotated[
    str,
    # Microsoft.Storage: an account's name; `ccoctl azure create-oidc-issuer` gives the container the same one.
    ValueSpec(
        rule="issuer-name",
        accepted="the name of a storage account, unique in Azure: 3-24 lower-case letters and digits",
        blank="<name>",
        check=matching(r"[a-z0-9]{3,24}"),
        guess=lambda text: re.sub(r"[^a-z0-9]", "", text.lower()),
    ),
]


def _published(generations: tuple[int, ...]) -> tuple[int, ...]:
    if not 1 <= len(generations) <= _MOST_KEYS:
        raise ValueError
    return ascending(generations)


Generation = Annotated[StrictInt, integer(1, 9999, "(the number of a key)")]


class SigningKeySettings(Model):
    """The key that signs the tokens of the cluster's service accounts."""

    vault_secret_name: types.SecretName | None = Field(
        None,
        description="With `issuer: existing`: name of a secret that exists in the vault and holds the private key "
        "(RSA, PEM).",
    )
    file: types.DocumentPath | None = Field(
        None,
        description="With `issuer: existing`: path of a file with the private key (RSA, PEM), which the stack stores "
        "in the vault; keep it outside of the repository.",
    )
    published: Annotated[
        tuple[Generation, ...],
        ValueSpec(
            rule="published-keys",
            accepted=f"a list of 1-{_MOST_KEYS} numbers of keys, ascending, such as [1, 2]",
            blank="[1]",
            check=_published,
        ),
    ] = Field((1,), description="With `issuer: create`: numbers of the keys whose public halves the issuer publishes.")
    signing: Generation = Field(
        1, description="With `issuer: create`: number of the published key that signs (`docs/explanation/issuer.md`)."
    )
    leaked: Annotated[
        tuple[Generation, ...],
        ValueSpec(
            rule="leaked-keys",
            accepted="a list of numbers of keys, ascending, such as [1]",
            blank="[1]",
            check=ascending,
        ),
    ] = Field(
        (),
        description="With `issuer: create`: numbers of keys that have leaked. They are published no longer, and the "
        "key after them signs at once (`docs/explanation/issuer.md`).",
    )
