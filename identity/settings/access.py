"""The keys of the way to the management cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import StrictBool

from identity.settings import types
from identity.settings.base import Model


class AccessSettings(Model):
    """How the stack signs in to the management cluster's API server (`identity.access.login`)."""

    # The program in the kubeconfig that makes the tokens.
    flavour: Literal["idstack", "kubelogin"] = "idstack"
    # `arm`: as the Azure providers do, by the ARM_* variables.
    login: Literal["arm", "certificate", "secret", "workload-identity", "github", "managed-identity", "azure-cli"] = (
        "arm"
    )
    client_id: types.ClientId | None = None
    certificate: types.FilePath | None = None
    client_secret_file: types.FilePath | None = None
    federated_token_file: types.FilePath | None = None
    # The public name of a private cluster.
    public_fqdn: StrictBool = False
    # Past Entra ID, with the administrators' static credential.
    admin: StrictBool = False
