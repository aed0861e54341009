"""The keys of a fleet file; `docs/guides/fleet.md` explains them by an example.

Settings of stacks are the keys of `docs/reference/configuration.md` without their namespace. They stay mappings here:
the complete configuration of each stack is validated by `identity.settings` (`ops/fleet/file.py`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import Field, StrictBool, StrictInt

from identity.secrets_store import duration
from identity.settings.schema import types
from identity.settings.schema.base import Model
from identity.settings.schema.schema_node import ValueSpec, integer, matching, without_credentials

# The Kubernetes objects of a stack have its name: the pods of its workspace carry it, with `-drift-workspace` and a
# hash of 11 characters, in a label of at most 63.
LONGEST_STACK_NAME: Final = 36


def _checked_duration(text: str) -> str:
    duration(text)
    return text


EnvironmentName = Annotated[
    str,
    ValueSpec(
        rule="environment-name",
        accepted='the name of an environment: 1-20 lower-case letters, digits and single "-", from a letter on',
        blank="<environment>",
        check=matching(r"(?=.{1,20}$)[a-z][a-z0-9]*(-[a-z0-9]+)*"),
        guess=lambda text: re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-"),
    ),
]
Backend = Annotated[
    str,
    ValueSpec(
        rule="backend",
        accepted="the storage account of the states: azblob://<container>?storage_account=<account>",
        blank="azblob://<container>?storage_account=<account>",
        check=without_credentials(r"azblob://[a-z0-9](-?[a-z0-9]){2,62}(/[\w./-]*)?\?storage_account=[a-z0-9]{3,24}"),
        hint="the stack's user signs in to it; do not write a key into the file",
    ),
]
SecretsProvider = Annotated[
    str,
    ValueSpec(
        rule="secrets-provider",
        accepted="a key in Key Vault: azurekeyvault://<vault>.vault.azure.net/keys/<key>",
        blank="azurekeyvault://<vault>.vault.azure.net/keys/<key>",
        check=matching(
            r"azurekeyvault://[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]\.vault\.(azure\.net|azure\.cn|usgovcloudapi\.net)"
            r"/keys/[a-zA-Z0-9-]{1,127}(/[0-9a-f]{32})?"
        ),
    ),
]
Pause = Annotated[
    str, ValueSpec(rule="pause", accepted="a time such as 30m, 1h or 1h30m", blank="<time>", check=_checked_duration)
]
WorkspaceImage = Annotated[
    str,
    ValueSpec(
        rule="workspace-image",
        accepted="the image of the workspace with its digest: <registry>/<name>[:<tag>]@sha256:<digest>",
        blank="<image>@sha256:<digest>",
        check=matching(
            r"(?=.{1,512}$)([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{0,127})?@sha256:[0-9a-f]{64}"
        ),
        hint="it contains the program, and a moved tag would deploy one that was not approved",
    ),
]


class OperatorSettings(Model):
    """How the Pulumi Kubernetes Operator runs an environment's stacks."""

    image: WorkspaceImage = Field(description="The workspace's image, built as the rendered Containerfile says.")
    client_id: types.ClientId = Field(description="Client id of the deployer, which trusts the workspaces' tokens.")
    drift: StrictBool = Field(
        False, description="Each stack has a second object, whose weekly preview fails if Azure was changed by hand."
    )


class ClusterFields(Model):
    """The settings of a hosted cluster's stack: keys of the stack, and keys of its one entry of `hostedClusters`."""

    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the cluster's stack.")
    hosted_cluster: dict[str, Any] = Field(
        default_factory=dict, description="Keys of its entry of `hostedClusters`; the name comes from the fleet."
    )


class FleetClusterSettings(ClusterFields):
    """One hosted cluster: its name, and what differs from the defaults of its environment."""

    name: types.ClusterName = Field(description="Name of the hosted cluster.")


class WaveSettings(Model):
    """In which order an environment's clusters are brought up."""

    canaries: tuple[types.ClusterName, ...] = Field((), description="The clusters that come before all others.")
    size: Annotated[StrictInt, integer(1, 1000, "clusters")] | None = Field(
        None, description="How many clusters a wave has, in the order of the file; all of them unless given."
    )
    pause: Pause | None = Field(None, description="How long to wait before each wave after the canaries.")


class SharedStackSettings(Model):
    """The stack with the vault and the key-vault-user of an environment."""

    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the shared stack alone.")


class EnvironmentSettings(Model):
    """One environment: a stack for each cluster, and a shared stack unless no cluster uses a vault."""

    name: EnvironmentName = Field(description="Name of the environment; the names of its stacks have it.")
    backend: Backend | None = Field(None, description="Where the states are; of the local cloud's stacks none.")
    secrets_provider: SecretsProvider | None = Field(
        None, description="The key that encrypts what is secret in the states; of the local cloud's stacks none."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of every stack of the environment.")
    shared: SharedStackSettings | None = Field(
        None, description="The shared stack; without it nothing of the environment is in a vault."
    )
    cluster_defaults: ClusterFields = Field(ClusterFields(), description="What every cluster's stack has.")
    clusters: tuple[FleetClusterSettings, ...] = Field((), description="The hosted clusters, a line each.")
    waves: WaveSettings = Field(WaveSettings(), description="The order of the clusters.")
    operator: OperatorSettings | None = Field(None, description="For `idstack fleet render`.")


class FleetSettings(Model):
    """A fleet file."""

    environments: tuple[EnvironmentSettings, ...] = Field(description="The environments, in their order.")
