"""The Kubernetes provider of the management cluster, and its kubeconfig: it signs in by itself, on every machine.

The kubeconfig holds no token on purpose. A token would differ in every run, expire in the middle of long ones, and be
stored in the state. `refresh` and `destroy`, which do not run the program, would find an old one there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pulumi
from pulumi_azure_native import containerservice
from pulumi_azure_native.provider import Provider as AzureProvider
from pulumi_kubernetes.provider import Provider as KubernetesProvider

from components.azure.management_cluster import ManagementCluster
from components.azure.providers import ClusterConnection, Providers
from components.plugin.resources import ClusterGate
from identity.aks.azure_rbac import decode
from identity.aks.exec_user import exec_user, login_of
from identity.aks.kinds import required_kinds
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.login import Login
from identity.azure.errors import AccessError
from identity.login_kinds import Flavour
from identity.settings import ManagementClusterSettings, Settings

# The value of `serverFqdn` that asks AKS for the public name of a private cluster.
PUBLIC_FQDN: Final = "public"
# How long a new role assignment takes until the cluster's own components run and its name has spread, at most.
_NEW_CLUSTER_SECONDS: Final = 900


def aks_kubeconfig(
    settings: Settings, cluster: ManagementClusterSettings, name: pulumi.Input[str], provider: AzureProvider
) -> pulumi.Output[str]:
    """A kubeconfig (secret) with server and certificate authority from AKS, and with a user that signs in by itself.

    It is JSON with sorted keys, the same string in every run; unknown in a preview before the cluster exists. `name` is
    the AKS cluster's: of all its outputs the one that previews know. Every run asks AKS, so a new address takes effect
    without a change.

    With `cluster.access.admin` it has the administrators' static credential: for the day on which Entra ID is down.
    Raises AccessError.
    """
    access = cluster.access
    login = None if access.admin else cluster_login(settings, cluster)
    where = {"resource_group_name": cluster.resource_group, "resource_name": name}
    fqdn = PUBLIC_FQDN if access.public_fqdn else None
    options = pulumi.InvokeOptions(provider=provider)
    if access.admin:
        pulumi.warn(
            "managementCluster.access.admin: the stack reaches the cluster with the administrators' static credential, "
            "past Entra ID and without a name in the audit log. Switch it off as soon as possible, and rotate the "
            "cluster's certificates."
        )
        value = containerservice.list_managed_cluster_admin_credentials_output(
            **where, server_fqdn=fqdn, opts=options
        ).apply(lambda answer: answer.kubeconfigs[0].value)
    else:
        value = containerservice.list_managed_cluster_user_credentials_output(
            **where, server_fqdn=fqdn, opts=options
        ).apply(lambda answer: answer.kubeconfigs[0].value)
    return pulumi.Output.secret(value.apply(lambda skeleton: signed_in(skeleton, login, access.flavour).to_json()))


def signed_in(value: str, login: Login | None, flavour: Flavour) -> Kubeconfig:
    """AKS's kubeconfig (base64) with a user that signs in by `login`; unchanged if that is None. Raises AccessError."""
    skeleton = decode(value)
    context = skeleton.chosen()
    if login is not None:
        return skeleton.only(context, user=exec_user(login, flavour, project=Path.cwd()))
    user = skeleton.entries("contexts")[context]["user"]
    return skeleton.only(context, user=skeleton.entries("users")[user])


def cluster_login(settings: Settings, cluster: ManagementClusterSettings) -> Login:
    """How the stack signs in to the cluster; raises AccessError."""
    return login_of(cluster.access, settings.tenant_id, settings.cloud.authority_host)


def access_gate(
    settings: Settings, kubeconfig: pulumi.Output[str], cluster: ManagementCluster, own: pulumi.ProviderResource | None
) -> ClusterGate:
    """The gate after which a new cluster can be used: the deployer has its permissions, the add-on's kinds are served.

    `own` is its provider. It logs what it waits for. It waits again only if the cluster is replaced or reached in
    another way.
    """
    return ClusterGate(
        "cluster-access-gate",
        clusterId=cluster.cluster_id,
        clusterUid=cluster.uid,
        hasAzureRbac=cluster.has_azure_rbac,
        kubeconfig=kubeconfig,
        kinds=[kind.path for kind in required_kinds(settings)],
        timeoutSeconds=_NEW_CLUSTER_SECONDS,
        opts=pulumi.ResourceOptions(depends_on=cluster.ready, provider=own),
    )


def with_kubernetes_provider(
    settings: Settings, providers: Providers, created: ManagementCluster | None, *, hands_over: bool = False
) -> Providers:
    """Add the management cluster's provider, if the stack makes objects there, or hands them over in this run.

    Raises RunError if the kubeconfig that the settings name cannot be read, AccessError if AKS's cannot be used.
    """
    cluster = settings.management_cluster
    gate: ClusterGate | None = None
    if cluster is None or not (settings.writes_to_management_cluster or hands_over):
        return providers
    if cluster.kubeconfig is not None:
        # The content, because a path in the state would mean another file on the next machine.
        kubeconfig = pulumi.Output.secret(file_content(cluster, Path(cluster.kubeconfig)))
    else:
        name = cluster.name if created is None else created.name
        kubeconfig = aks_kubeconfig(settings, cluster, name, providers.azure)
        gate = None if created is None else access_gate(settings, kubeconfig, created, providers.own)
    full_id = settings.management_cluster_id
    return replace(
        providers,
        connection=ClusterConnection(cluster_id=full_id, kubeconfig=kubeconfig, context=cluster.context),
        kubernetes=KubernetesProvider(
            "kubernetes",
            kubeconfig=kubeconfig,
            context=cluster.context,
            # As long as it stays the same, a new address or certificate authority replaces no object on the cluster.
            cluster_identifier=full_id,
            # A manual change adds a second field owner, and server-side apply would refuse to repair it (decision
            # record 0035).
            enable_patch_force=True,
            opts=None if gate is None else pulumi.ResourceOptions(depends_on=[gate]),
        ),
    )


def file_content(cluster: ManagementClusterSettings, path: Path) -> str:
    """The kubeconfig that the settings name, with the files beside it; raises RunError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        read = Kubeconfig.parse(text, str(path), path.absolute().parent)
        flattened = read.flattened()
        return text if flattened is read else flattened.to_yaml()
    except (OSError, UnicodeDecodeError, AccessError) as error:
        raise pulumi.RunError(
            f'idstack:managementCluster.kubeconfig: found "{path}", which cannot be read ({error}). Accepted is the '
            f"path of a kubeconfig file, or nothing: then the stack makes its own for "
            f"{cluster.resource_group}/{cluster.name}."
        ) from None
