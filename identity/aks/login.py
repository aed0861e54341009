"""The login to an AKS API server: everything that identifies a sign-in, and nothing secret.

A login consists of arguments. Environment variables count only if its kind reads them (`arm`, and the two of GitHub's
OIDC endpoint), so a stray AZURE_CLIENT_ID never changes a pipeline's identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from identity.azure.errors import LoginRefusedError
from identity.login_kinds import LOGIN_KINDS, LoginKind

# Microsoft's own applications behind every AKS-managed Entra integration, the same ids in every cloud and tenant
# (learn.microsoft.com/azure/aks/kubelogin-authentication).
AKS_SERVER_APP_ID: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
AKS_CLIENT_APP_ID: Final = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"

# Variables that azure-identity, MSAL and Pulumi's providers read.
_FOREIGN: Final = ("AZURE_", "AAD_", "ARM_")
# What AKS's webhook sets in a pod.
_WORKLOAD_IDENTITY: Final = ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_ALWAYS: Final = frozenset({"kind", "authority_host", "server_id"})


@dataclass(frozen=True, kw_only=True)
class Login:
    """One login.

    Attributes:
        tenant_id, client_id: UUIDs; a credential document has both, and must agree with them.
        certificate, certificate_password_file, client_secret_file, federated_token_file: paths.
        imds_endpoint: the local cloud's IMDS; None for this machine's own.
        authority_host: https URL of Entra ID; that of the cloud the cluster is in.
        server_id: the application that the token is for; another one only for API servers that are not AKS's.

    Raises:
        LoginRefusedError: for a missing attribute, or one that this kind does not use.
    """

    kind: LoginKind
    tenant_id: str | None = None
    client_id: str | None = None
    certificate: Path | None = None
    certificate_password_file: Path | None = None
    client_secret_file: Path | None = None
    federated_token_file: Path | None = None
    imds_endpoint: str | None = None
    authority_host: str = "https://login.microsoftonline.com/"
    server_id: str = AKS_SERVER_APP_ID

    def __post_init__(self) -> None:
        present = {attribute.name for attribute in fields(self) if getattr(self, attribute.name) is not None} - _ALWAYS
        row = LOGIN_KINDS[self.kind]
        if missing := [option(name) for name in _ORDER if name in row.needs - present]:
            raise LoginRefusedError(f"the login {self.kind} needs {' and '.join(missing)} as well")
        if surplus := [option(name) for name in _ORDER if name in present - row.needs - row.takes]:
            raise LoginRefusedError(
                f"the login {self.kind} has no use for {' and '.join(surplus)}; leave that out or choose another"
            )
        if not self.authority_host.startswith("https://"):
            raise LoginRefusedError(f'--authority-host: found "{self.authority_host}"; accepted is an https URL')

    @property
    def scope(self) -> str:
        """The scope of the token."""
        return f"{self.server_id}/.default"

    def arguments(self) -> list[str]:
        """The arguments of `idstack token` that make this login."""
        return ["--login", self.kind.value, *(text for pair in self._options() for text in pair)]

    @classmethod
    def of_arguments(cls, arguments: Sequence[str]) -> Login | None:
        """The login with these arguments, in the form of `arguments` but in any order; None for any others.

        Raises LoginRefusedError as the class does.
        """
        names = {option(attribute.name): attribute.name for attribute in fields(cls) if attribute.name != "kind"}
        pairs = dict(zip(arguments[::2], arguments[1::2], strict=False))
        kind = pairs.pop("--login", "")
        if len(arguments) != 2 * len(pairs) + 2 or pairs.keys() - names.keys() or kind not in set(LoginKind):
            return None
        texts = {names[name]: text for name, text in pairs.items()}
        paths = {name: Path(text) for name, text in texts.items() if name in _PATHS}
        return cls(**{**texts, **paths, "kind": LoginKind(kind)})  # type: ignore[arg-type]

    def _options(self) -> Iterator[tuple[str, str]]:
        for name in (*_ORDER, "server_id", "authority_host"):
            value = getattr(self, name)
            if value is not None:
                yield option(name), str(value)


_PATHS: Final = frozenset({"certificate", "certificate_password_file", "client_secret_file", "federated_token_file"})
_ORDER: Final = tuple(attribute.name for attribute in fields(Login) if attribute.name not in _ALWAYS)


def without_foreign_variables(environ: Mapping[str, str], kind: LoginKind) -> dict[str, str]:
    """The environment without the variables that would make a sign-in somebody else's.

    azure-identity reads AZURE_* wherever an argument is absent, and a pod with workload identity has them set.
    """
    kept = LOGIN_KINDS[kind].variables
    if kind is LoginKind.ARM and environ.get("ARM_USE_AKS_WORKLOAD_IDENTITY") == "true":
        kept += _WORKLOAD_IDENTITY
    return {name: value for name, value in environ.items() if not name.startswith(_FOREIGN) or name.startswith(kept)}


def option(name: str) -> str:
    """An attribute as the command line spells it."""
    return f"--{name.replace('_', '-')}"
