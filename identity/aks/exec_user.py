"""The `user` of a kubeconfig that signs in by itself: an exec block for `idstack token` or for kubelogin.

Nothing in it is secret or depends on the machine or the day, so it is the same string in every run. A stack's own
starts the interpreter of the environment that Pulumi.yaml names, by a path from the project's directory, where the
engine starts its plugins: their PATH may lack the command, and that environment too, if `pulumi install` made it.
kubelogin's arguments are those that convert-kubeconfig does not write but `get-token` takes (v0.2.21): with
`--disable-environment-override` it reads no stray AZURE_* or AAD_* variable, with `--use-azurerm-env-vars` the ARM_*
variables of the deployer and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from identity.aks import exec_plugin
from identity.aks.exec_plugin import API_VERSIONS
from identity.aks.login import AKS_CLIENT_APP_ID, Login
from identity.azure.errors import LoginRefusedError
from identity.clouds import CLOUDS
from identity.login_kinds import Flavour, LoginKind
from identity.settings import AccessSettings

_HINTS: Final[Mapping[Flavour, str]] = {
    Flavour.IDSTACK: "idstack is the command of the identity stack's checkout: run `make setup` there and put its "
    ".venv/bin on PATH",
    Flavour.KUBELOGIN: "kubelogin is Azure/kubelogin, not the OIDC tool of the same name: `az aks install-cli` "
    "installs it, and so does `go install github.com/Azure/kubelogin@v0.2.21`",
}
_PYTHON: Final = ".venv/bin/python"
_PUBLIC: Final = CLOUDS["AzurePublicCloud"]


def login_of(access: AccessSettings, tenant_id: str, authority_host: str) -> Login:
    """How the stack signs in to its management cluster; raises LoginRefusedError."""
    return Login(
        kind=access.login,
        tenant_id=None if access.login is LoginKind.MANAGED_IDENTITY else tenant_id,
        client_id=access.client_id,
        certificate=_path(access.certificate),
        client_secret_file=_path(access.client_secret_file),
        federated_token_file=_path(access.federated_token_file),
        authority_host=authority_host,
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def exec_user(
    login: Login, flavour: Flavour, environment: Mapping[str, str] | None = None, *, project: Path | None = None
) -> dict[str, Any]:
    """The user's block for a login; `environment` are variables for the plugin. Raises LoginRefusedError.

    `project` is the directory of its one user, the Pulumi program; without it, or an environment in it, the plugin is
    looked up on PATH.
    """
    command = [str(flavour)]
    if flavour is Flavour.IDSTACK and project is not None and (project / _PYTHON).exists():
        command = [_PYTHON, "-m", exec_plugin.__name__]
    arguments = [*exec_plugin.EXEC, *login.arguments()] if flavour is Flavour.IDSTACK else _kubelogin(login)
    return {
        "exec": {
            "apiVersion": API_VERSIONS[0],
            "command": command[0],
            "args": [*command[1:], *arguments],
            "env": [{"name": name, "value": value} for name, value in sorted((environment or {}).items())] or None,
            "installHint": _HINTS[flavour],
            # A prompt in a pipeline hangs, because nobody sees it.
            "interactiveMode": "IfAvailable" if login.kind is LoginKind.DEVICE_CODE else "Never",
            "provideClusterInfo": False,
        }
    }


def _kubelogin(login: Login) -> list[str]:
    write = _KUBELOGIN.get(login.kind)
    if write is None:
        raise LoginRefusedError(
            f"kubelogin would need the {login.kind} in its arguments, and so in the kubeconfig; set ARM_CLIENT_SECRET "
            "and use --login arm, or take --flavour idstack"
        )
    way, *options = write(login)
    client = AKS_CLIENT_APP_ID if login.kind is LoginKind.DEVICE_CODE else None
    ids = (("--tenant-id", login.tenant_id), ("--client-id", login.client_id or client))
    named = [text for option, value in ids if value is not None for text in (option, value)]
    return ["get-token", "--login", way, *named, *options, "--server-id", login.server_id, *_cloud(login)]


def _cloud(login: Login) -> Iterator[str]:
    """Nothing for the public cloud, kubelogin's default; an unknown authority is not looked up there."""
    if login.kind in {LoginKind.MANAGED_IDENTITY, LoginKind.AZURE_CLI}:
        return
    host = login.authority_host.rstrip("/") + "/"
    known = next((cloud.name for cloud in CLOUDS.values() if cloud.authority_host == host), None)
    if known is None:
        # The trailing slash is mandatory.
        yield from ("--authority-host", host, "--disable-instance-discovery")
    elif known != _PUBLIC.name:
        yield from ("--environment", known)


def _certificate(login: Login) -> list[str]:
    if login.tenant_id is None or login.client_id is None:
        raise LoginRefusedError(
            "kubelogin cannot read a credential document, which has tenant and client id: give both, and "
            "a certificate in PEM (PKCS#8), or take --flavour idstack"
        )
    if login.certificate_password_file is not None:
        raise LoginRefusedError(
            "kubelogin takes no password file; give it a PEM without a password, or --flavour idstack"
        )
    return ["spn", "--client-certificate", str(login.certificate), _ISOLATED]


_ISOLATED: Final = "--disable-environment-override"
# How kubelogin calls the login, and the options that follow its ids.
_KUBELOGIN: Final[Mapping[LoginKind, Callable[[Login], list[str]]]] = {
    LoginKind.CERTIFICATE: _certificate,
    LoginKind.WORKLOAD_IDENTITY: lambda login: [
        "workloadidentity",
        "--federated-token-file",
        str(login.federated_token_file),
        _ISOLATED,
    ],
    # In a job of GitHub's it asks the runner by itself.
    LoginKind.GITHUB: lambda _: ["workloadidentity", _ISOLATED],
    LoginKind.MANAGED_IDENTITY: lambda _: ["msi", _ISOLATED],
    LoginKind.AZURE_CLI: lambda _: ["azurecli", "--timeout", "120s"],
    LoginKind.ARM: lambda _: ["spn", "--use-azurerm-env-vars"],
    LoginKind.DEVICE_CODE: lambda _: ["devicecode", _ISOLATED],
}
