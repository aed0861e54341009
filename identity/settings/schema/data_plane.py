"""The keys of a managed identity of service accounts that existed before the stack, under names of its own."""

from __future__ import annotations

from pydantic import Field

from identity.settings.schema import identity_fields, types
from identity.settings.schema.base import Model


class DataPlaneIdentitySettings(Model):
    """One managed identity that service accounts of a hosted cluster use; Azure renames nothing."""

    name: types.ManagedIdentityName | None = Field(
        None, description="Name of the managed identity; without it `<cluster>-<identity>-<infraID>`."
    )
    location: types.Location | None = Field(
        None, description="Region of the managed identity; without it the stack's `location`."
    )
    federated_credentials: dict[identity_fields.FederatedSuffix, types.FederatedCredentialName] = Field(
        default_factory=dict,
        description="Names of its federated credentials by the last word of the names that the stack gives: "
        "`<cluster>-<identity>-fed-id-<word>`; of a sole one, whose name has no such word, by `account`.",
    )
