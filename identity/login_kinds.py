"""The logins to an AKS API server, one row each. `Login`, settings and command line follow the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class LoginKind(StrEnum):
    """How a login authenticates."""

    ARM = "arm"
    CERTIFICATE = "certificate"
    SECRET = "secret"
    WORKLOAD_IDENTITY = "workload-identity"
    GITHUB = "github"
    MANAGED_IDENTITY = "managed-identity"
    AZURE_CLI = "azure-cli"
    DEVICE_CODE = "device-code"


class Flavour(StrEnum):
    """The program that gets the token."""

    IDSTACK = "idstack"
    KUBELOGIN = "kubelogin"


@dataclass(frozen=True, kw_only=True)
class LoginRow:
    """One kind of login.

    Attributes:
        description: the identity that signs in, for people.
        needs, takes: required and optional attributes of `identity.aks.login.Login`.
        variables: prefixes of the environment variables that this sign-in itself reads.
        is_attended: a person takes part, so a stack's configuration cannot name it.
    """

    description: str
    needs: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()
    is_attended: bool = False


# Where the Azure CLI keeps its sign-in.
_CLI_DIRECTORY: Final = "AZURE_CONFIG_DIR"

LOGIN_KINDS: Final[Mapping[LoginKind, LoginRow]] = {
    LoginKind.ARM: LoginRow(
        description="the identity that the ARM_* variables name, as Pulumi's Azure providers read them",
        needs=frozenset({"tenant_id"}),
        takes=frozenset({"client_id"}),
        variables=("ARM_", _CLI_DIRECTORY),
    ),
    LoginKind.CERTIFICATE: LoginRow(
        description="a service principal's certificate: a credential document of this project, PEM, or PKCS#12",
        needs=frozenset({"certificate"}),
        takes=frozenset({"tenant_id", "client_id", "certificate_password_file"}),
    ),
    LoginKind.SECRET: LoginRow(
        description="a service principal's secret, in a file",
        needs=frozenset({"tenant_id", "client_id", "client_secret_file"}),
    ),
    LoginKind.WORKLOAD_IDENTITY: LoginRow(
        description="a token of another issuer that Entra ID trusts, in a file that is kept up to date",
        needs=frozenset({"tenant_id", "client_id", "federated_token_file"}),
    ),
    LoginKind.GITHUB: LoginRow(
        description="a token of another issuer, requested from the GitHub Actions runner for each sign-in",
        needs=frozenset({"tenant_id", "client_id"}),
    ),
    LoginKind.MANAGED_IDENTITY: LoginRow(
        description="an identity of this machine, from IMDS",
        takes=frozenset({"client_id", "imds_endpoint"}),
    ),
    LoginKind.AZURE_CLI: LoginRow(
        description="the user of `az login`",
        takes=frozenset({"tenant_id"}),
        variables=(_CLI_DIRECTORY,),
    ),
    LoginKind.DEVICE_CODE: LoginRow(
        description="a person at another device; renewed without them for as long as Entra ID allows",
        needs=frozenset({"tenant_id"}),
        takes=frozenset({"client_id"}),
        is_attended=True,
    ),
}
# Those that a stack's configuration can name.
UNATTENDED: Final = tuple(kind for kind, row in LOGIN_KINDS.items() if not row.is_attended)
