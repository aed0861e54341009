"""`SignInGateResource`: proves by consecutive sign-ins that Entra ID knows a certificate, before a secret has it."""

from __future__ import annotations

from datetime import timedelta

from identity.aks import permissions
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kinds import kind_of
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.secret_tags import THUMBPRINT
from identity.credentials.sign_in import SignInFailedError, prove
from identity.plugin_schema import (
    ClusterGateInputs,
    ClusterGateOutputs,
    RegistrableCertificate,
    SignInGateInputs,
    SignInGateOutputs,
    VaultAddress,
)
from plugin import PluginError, log_info, pause
from provider import keys
from provider.resource import TypedResource, name_of, plugin_errors
from provider.vault_secrets import VaultSecret


class SignInGateResource(TypedResource[SignInGateInputs[str], SignInGateOutputs[str]]):
    """The proof of a certificate that this process issued."""

    inputs = SignInGateInputs
    outputs = SignInGateOutputs
    # Where the certificate is delivered.
    uncompared = frozenset({"cloud", "vaultId", "secretName"})

    def make(self, urn: str, inputs: SignInGateInputs[str]) -> tuple[str, SignInGateOutputs[str]]:
        """Prove the sign-in; one that the vault has was proven before."""
        issued = keys.find(inputs["thumbprint"])
        if issued is None:
            current = _in_vault(inputs)
            if current is not None and current.tags.get(THUMBPRINT) == inputs["thumbprint"]:
                return name_of(urn), {"provenAt": rfc3339.render(current.created)}
            raise PluginError(
                f"the key of the certificate {inputs['thumbprint']} is gone: the run that issued it ended before the "
                "vault had it. Run the command again, which issues another certificate"
            )
        _require_valid(issued)
        try:
            proven_at = prove(
                inputs["authorityHost"],
                inputs["tenantId"],
                inputs["clientId"],
                issued.certificate_pem,
                issued.private_key_pem,
                inputs["scope"],
                successes=inputs["successes"],
                settle=timedelta(seconds=inputs["settleSeconds"]),
                timeout=timedelta(seconds=inputs["timeoutSeconds"]),
                sleep=pause,
            )
            return name_of(urn), {"provenAt": rfc3339.render(proven_at)}
        except (SignInFailedError, ValueError) as error:
            raise PluginError(str(error)) from None

    def keeps_outputs(self, old: SignInGateInputs[str], new: SignInGateInputs[str]) -> bool:
        """Only another certificate, or another application, needs another proof.

        A certificate in the vault was proven before, and this process does not have its key. If it is registered once
        more, nothing is written that would have to wait for a proof.
        """
        return (old["clientId"], old["thumbprint"]) == (new["clientId"], new["thumbprint"])


def _require_valid(issued: IssuedCertificate) -> None:
    """Raises PluginError for a certificate that Entra ID would refuse as expired until the time-out."""
    now = rfc3339.utc_now()
    if issued.not_before > now + CLOCK_SKEW:
        wrong = f"begins at {rfc3339.render(issued.not_before)}"
    elif issued.not_after <= now:
        wrong = f"ended at {rfc3339.render(issued.not_after)}"
    else:
        return
    raise PluginError(
        f"the certificate {issued.thumbprint} {wrong}, and it is {rfc3339.render(now)}: nobody can sign in with it, "
        "so it was not delivered. If this machine's clock is wrong, set it right, and correct the secret's `nbf` if "
        "somebody edited that; then run the command again"
    )


def require_registrable(args: RegistrableCertificate) -> None:
    """Raises `PluginError` for a certificate that must not be registered."""
    if keys.find(args["thumbprint"]) is not None:
        return
    current, begin = _in_vault(args), rfc3339.parse(args["notBefore"])
    if current is not None and current.tags.get(THUMBPRINT) == args["thumbprint"] and current.not_before == begin:
        return
    raise PluginError(
        f"the certificate {args['thumbprint']} is not registered again: somebody took it out of Entra ID, and "
        f"{VaultSecret.of(args).id} does not show it. `.venv/bin/idstack recover` notes that, and the next run issues "
        "another one"
    )


def _in_vault(address: VaultAddress) -> SecretMetadata | None:
    secret = VaultSecret.of(address)
    with plugin_errors(f"whether {secret.id} has the certificate cannot be seen"):
        return secret.metadata()


class ClusterGateResource(TypedResource[ClusterGateInputs[str], ClusterGateOutputs[str]]):
    """Waits for a cluster; waits again if the cluster, its address or what it must serve changes."""

    inputs = ClusterGateInputs
    outputs = ClusterGateOutputs

    def make(self, urn: str, inputs: ClusterGateInputs[str]) -> tuple[str, ClusterGateOutputs[str]]:
        """Wait for the cluster."""
        requirements = AccessRequirements(permissions.permissions(), tuple(map(kind_of, inputs["kinds"])))
        aks = AksCluster(inputs["clusterId"], inputs["hasAzureRbac"])
        try:
            kubeconfig = Kubeconfig.parse(inputs["kubeconfig"], "the kubeconfig of the new cluster")
            with ApiServer(kubeconfig, aks) as server:
                server.wait_for(requirements, inputs["timeoutSeconds"], is_new=True, log=log_info, sleep=pause)
        except AccessError as error:
            raise PluginError(f"{error}. The cluster stays; bring the stack up again when that is fixed") from None
        return name_of(urn), {"openedAt": rfc3339.render(rfc3339.utc_now())}

    def keeps_outputs(self, old: ClusterGateInputs[str], new: ClusterGateInputs[str]) -> bool:
        """A changed time-out needs no new wait."""
        return {**old, "timeoutSeconds": 0} == {**new, "timeoutSeconds": 0}
