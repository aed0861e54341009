"""Managed identities that service accounts of a hosted cluster use through federated credentials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.azure.managed_identity import ManagedIdentityArgs, managed_identity
from identity import resource_types
from identity.catalogue import FEDERATED_AUDIENCE
from identity.catalogue_rows import DataPlaneIdentity
from identity.naming import federated_credential_name


@dataclass(frozen=True, kw_only=True)
class DataPlaneIdentityArgs(ManagedIdentityArgs[DataPlaneIdentity]):
    """Inputs of `DataPlaneIdentityComponent`.

    `issuer` has the resources that publish the cluster's keys, empty if they exist already.
    """

    issuer: Sequence[pulumi.Resource] = ()


class DataPlaneIdentityComponent(pulumi.ComponentResource):
    """A managed identity, its federated credentials and its role, named as `hypershift create iam azure` names them,
    unless the settings name objects that existed before.

    Outputs: `client_id` and `principal_id` (Output[str]).
    """

    def __init__(self, name: str, args: DataPlaneIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(resource_types.DATA_PLANE_IDENTITY, name, None, opts)
        row, settings, cluster = args.row, args.settings, args.cluster
        names = cluster.federated_identity(row.field)
        identity = managed_identity(
            name,
            self,
            args,
            location=names.location or settings.location,
            grants=[row.grant(settings.roles)],
            credentials={
                subject.word: names.federated_credentials.get(
                    subject.word, federated_credential_name(cluster.name, row.credential_stem, subject.suffix)
                )
                for subject in row.subjects
            },
            issuer=cluster.issuer_url,
            audience=FEDERATED_AUDIENCE,
            trusted=args.issuer,
        )
        self.client_id: pulumi.Output[str] = identity.client_id
        self.principal_id: pulumi.Output[str] = identity.principal_id
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id})
