"""What is read and refused of the management cluster before the first resource: its state, access, namespaces, keys."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pulumi

from components.azure.providers import Providers, provider_error
from components.kubernetes.provider import PUBLIC_FQDN, cluster_login, file_content, signed_in
from components.preflight.problems import problem
from components.preflight.shared_stack import of_own_state, this_stack
from identity import resource_types
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.azure_rbac import AksCluster, explained
from identity.aks.control_planes import control_planes, described, unreadable
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.credentials.service_account_key import UnusableKeyError, is_read_by_hypershift
from identity.hypershift import HOSTED_CLUSTER_PATH
from identity.naming import cluster_side_name, namespace_guard_name
from identity.outputs import StackOutputs, encryption_keys
from identity.settings import ConfigurationError, HostedClusterSettings, ManagementClusterSettings, Problem, Settings
from identity.settings.rules.key_rotation import dropped_keys, dropped_places, finished, moved_keys, unfinished
from identity.settings.schema.problems import to_set

_DENIED: Final = "AuthorizationFailed"  # ARM's code for a caller without a role that allows the action
_Answer = TypeVar("_Answer")


class ClusterReader:
    """Requests to the API server; the first one gets the kubeconfig. `aks` is the cluster as ARM describes it."""

    def __init__(
        self, settings: Settings, cluster: ManagementClusterSettings, providers: Providers, aks: AksCluster
    ) -> None:
        self.aks = aks
        self._settings = settings
        self._cluster = cluster
        self._providers = providers
        self._kubeconfig: Kubeconfig | None = None

    async def ask(self, question: Callable[[ApiServer], _Answer]) -> _Answer:
        """The answer; an AccessError says what the cluster's state explains of it."""
        try:
            if self._kubeconfig is None:
                self._kubeconfig = await self._sign_in()
            return await asyncio.to_thread(self._asked, self._kubeconfig, question)
        except AccessError as error:
            raise AccessError(explained(error, self.aks)) from None

    def _asked(self, kubeconfig: Kubeconfig, question: Callable[[ApiServer], _Answer]) -> _Answer:
        with ApiServer(kubeconfig, self.aks, context=self._cluster.context) as server:
            return question(server)

    async def _sign_in(self) -> Kubeconfig:
        """The kubeconfig of the configuration, else AKS's with the stack's own sign-in."""
        cluster = self._cluster
        if cluster.kubeconfig is not None:
            return Kubeconfig.parse(file_content(cluster, Path(cluster.kubeconfig)), cluster.kubeconfig)
        login, access = cluster_login(self._settings, cluster), cluster.access
        who = "Admin" if access.admin else "User"
        inputs: dict[str, Any] = {"resourceGroupName": cluster.resource_group, "resourceName": cluster.name}
        try:
            answer = await pulumi.runtime.invoke_async(
                f"azure-native:containerservice:listManagedCluster{who}Credentials",
                {**inputs, **({"serverFqdn": PUBLIC_FQDN} if access.public_fqdn else {})},
                pulumi.InvokeOptions(provider=self._providers.azure),
            )
        except Exception as error:
            reason = provider_error(error)
            fix = f"; give the identity that runs this the role Azure Kubernetes Service Cluster {who} Role there"
            raise AccessError(
                f'AKS does not hand out the kubeconfig of "{cluster.name}": {reason.rstrip(".")}'
                f"{fix if _DENIED in reason else ''}"
            ) from None
        return signed_in(answer["kubeconfigs"][0]["value"], None if access.admin else login, access.flavour)


def cluster_reader(settings: Settings, providers: Providers, aks: AksCluster | None) -> ClusterReader | None:
    """The reader; None without a management cluster, or until it exists.

    `aks` is the cluster as ARM describes it, None if ARM has none, or nothing can run there yet.
    """
    cluster = settings.management_cluster
    if cluster is None or (aks is None and cluster.kubeconfig is None):
        return None
    return ClusterReader(settings, cluster, providers, aks or AksCluster(settings.management_cluster_id))


# Type and outputs of the resources in a stack's last snapshot, by URN, without those that wait for their deletion
# (pulumi/pulumi v3.259.0, `pkg/backend/backend.go`, GetStackResourceOutputs).
READ_STACK_RESOURCE_OUTPUTS: Final = "pulumi:pulumi:readStackResourceOutputs"
_NAMESPACE_SUFFIX: Final = cluster_side_name("") + "-namespace"


@dataclass(frozen=True, kw_only=True)
class OwnNamespaces:
    """The Kubernetes resources in the state.

    `names` are the namespaces by hosted cluster, without those that a run has already left to HyperShift; `objects` are
    the names of all Kubernetes resources.
    """

    names: Mapping[str, str]
    objects: frozenset[str]


async def own_namespaces() -> OwnNamespaces:
    """Read the state; raises RunError if that fails."""
    outputs = await of_own_state(
        READ_STACK_RESOURCE_OUTPUTS, {"stackName": this_stack()}, "state, which has the namespaces that it made,"
    )
    resources: dict[str, Mapping[str, Any]] = {urn.rpartition("::")[2]: resource for urn, resource in outputs.items()}
    namespaces = {
        name.removesuffix(_NAMESPACE_SUFFIX): str(resource["outputs"]["metadata"]["name"])
        for name, resource in resources.items()
        if resource["type"] == resource_types.NAMESPACE
    }
    return OwnNamespaces(
        names={cluster: name for cluster, name in namespaces.items() if not _is_handed_over(resources, cluster)},
        objects=frozenset(name for name, resource in resources.items() if resource["type"].startswith("kubernetes:")),
    )


def _is_handed_over(resources: Mapping[str, Mapping[str, Any]], cluster: str) -> bool:
    """Whether a run has reached the guard, which comes after every object that it leaves to HyperShift."""
    guard = resources.get(namespace_guard_name(cluster))
    return guard is not None and guard["outputs"]["handedOver"] is True


_READY_SECONDS: Final = 300  # how long Azure takes for a new role assignment, at most


async def check_access(settings: Settings, reader: ClusterReader | None) -> None:
    """Sign in to the cluster as the stack will, before the first resource. Raises RunError with cause and fix.

    A preview needs only a sign-in, so a read-only identity may run it. An update also waits until the deployer has its
    permissions and the API server serves the kinds of the stack's objects. If the stack makes the cluster, the same run
    may bring both: then `access_gate` waits for them.
    """
    cluster = settings.management_cluster
    if reader is None or cluster is None or not settings.asks_aks_for_kubeconfig:
        return
    if reader.aks.is_off:
        raise pulumi.RunError(f"idstack:managementCluster: {reader.aks.explanation}. Nothing was changed.")
    # A preview requires nothing, as it makes no object.
    is_required = cluster.create is None and not pulumi.runtime.is_dry_run()
    required = AccessRequirements.of(settings) if is_required else AccessRequirements()

    def wait_until_ready(server: ApiServer) -> None:
        server.check_sign_in()
        server.wait_for(required, _READY_SECONDS, log=pulumi.log.info)

    try:
        await reader.ask(wait_until_ready)
    except AccessError as error:
        raise pulumi.RunError(f"idstack:managementCluster: {error}. Nothing was changed.") from None


async def check_control_planes(settings: Settings, own: OwnNamespaces, reader: ClusterReader | None) -> frozenset[str]:
    """Names of the hosted clusters whose namespaces this run hands over to HyperShift.

    Those are the stack's `own` namespaces that hold a control plane, if the configuration has changed to
    `clusterSide: hypershift`.
    Raises ConfigurationError if the run would make or delete a namespace with a control plane, and RunError if an
    update cannot see that. A preview goes on with a warning, as the preview identity may not reach the cluster.
    """
    owned = own.names
    own_sides = (cluster.namespace_name for cluster in settings.hosted_clusters if settings.makes_cluster_side(cluster))
    namespaces = {*owned.values(), *own_sides}
    if not namespaces:
        return frozenset()
    if settings.management_cluster is None:
        raise ConfigurationError([_without_cluster(owned)])
    if reader is None:
        return frozenset()
    found = await _seen(reader, sorted(namespaces))
    if problems := list(_problems(settings, owned, found)):
        raise ConfigurationError(problems)
    handed_over = frozenset(name for name, namespace in owned.items() if namespace in found)
    for name in sorted(handed_over):
        pulumi.log.info(
            f"{owned[name]} is left to HyperShift: it stays in the cluster with all that HyperShift has in it, and the "
            "next run takes it out of the stack's state"
        )
    return handed_over


async def _seen(reader: ClusterReader, namespaces: list[str]) -> Mapping[str, str]:
    """The control planes in these namespaces; none for a preview that cannot see them."""
    try:
        return await _fetch_control_planes(reader, namespaces)
    except AccessError as error:
        text = f"idstack:managementCluster: {unreadable(namespaces, str(error))}"
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{text}. This is a preview: `up` looks again")
            return {}
        raise pulumi.RunError(f"{text}. Nothing was changed.") from None


async def _fetch_control_planes(reader: ClusterReader, namespaces: list[str]) -> Mapping[str, str]:
    return await reader.ask(lambda server: control_planes(server, namespaces))


def _problems(settings: Settings, owned: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Problem]:
    configured = {cluster.name: cluster.namespace_name for cluster in settings.hosted_clusters}
    for index, cluster in enumerate(settings.hosted_clusters):
        if settings.makes_cluster_side(cluster) and (namespace := cluster.namespace_name) in found:
            holds = described({namespace: found[namespace]})
            yield problem(
                "namespace-in-use",
                ("hostedClusters", index, "name"),
                cluster=cluster.name,
                holds=holds,
                set=to_set(("clusterSide",), "hypershift"),
            )
    for name, namespace in owned.items():
        if namespace in found and configured.get(name) != namespace:
            yield problem(
                "namespace-left-behind",
                ("hostedClusters",),
                name=name,
                namespace=namespace,
                holds=described({namespace: found[namespace]}),
            )


def _without_cluster(owned: Mapping[str, str]) -> Problem:
    return problem("namespace-out-of-sight", ("managementCluster",), namespaces=", ".join(owned.values()))


async def check_key_rotations(settings: Settings, last: StackOutputs[Any], reader: ClusterReader | None) -> None:
    """Compare the keys with those of the `last` complete run, and with what HyperShift's status says of them.

    Raises ConfigurationError. Where the status cannot be read, the run warns and goes on.
    """
    if problems := [*moved_keys(settings, last), *dropped_keys(settings, last)]:
        raise ConfigurationError(problems)
    clusters = {
        index: cluster for index, cluster in enumerate(settings.hosted_clusters) if _is_asked(settings, cluster, last)
    }
    if not clusters:
        return
    try:
        documents = await _fetch_hosted_clusters(settings, reader, clusters)
    except AccessError as error:
        for cluster in clusters.values():
            for place in dropped_places(cluster, encryption_keys(last, cluster.name)):
                pulumi.log.warn(
                    f"the KMS identity of {cluster.name} loses its role on {place}, and whether HyperShift still needs "
                    f"the key there cannot be seen ({error}): status.secretEncryption of the "
                    "HostedCluster must say Completed"
                )
        return
    problems = [problem for index, document in documents.items() for problem in unfinished(settings, index, document)]
    if problems:
        raise ConfigurationError(problems)
    for index, document in documents.items():
        if (text := finished(settings, index, document)) is not None:
            pulumi.log.info(text)


def _is_asked(settings: Settings, cluster: HostedClusterSettings, last: StackOutputs[Any]) -> bool:
    """Whether HyperShift's status of the cluster counts: the stack writes its keys, or takes a role away."""
    if settings.makes_cluster_side(cluster) or cluster.kms is None:
        return False
    return cluster.hosted_cluster is not None or bool(dropped_places(cluster, encryption_keys(last, cluster.name)))


async def _fetch_hosted_clusters(
    settings: Settings, reader: ClusterReader | None, clusters: Mapping[int, HostedClusterSettings]
) -> dict[int, Mapping[str, Any]]:
    """The HostedClusters that exist, by index; raises AccessError."""
    if settings.management_cluster is None:
        raise AccessError("the stack has no managementCluster")
    if reader is None:
        return {}  # the stack makes the cluster, and it is not there, or nothing can run there yet

    def read(server: ApiServer) -> dict[int, Mapping[str, Any]]:
        documents = {
            index: server.read(HOSTED_CLUSTER_PATH.format(cluster.namespace, cluster.name))
            for index, cluster in clusters.items()
        }
        return {index: document for index, document in documents.items() if document is not None}

    return await reader.ask(read)


_KEY: Final = "key"
_PATH: Final = "/api/v1/namespaces/{}/secrets/{}"


async def check_signing_key_secrets(settings: Settings, reader: ClusterReader | None) -> None:
    """Check the Secrets that somebody else made, if they exist and the deployer may read them.

    Raises ConfigurationError.
    """
    named = _named(settings)
    if not named or reader is None:
        return

    def read(server: ApiServer) -> dict[int, dict[str, Any] | None]:
        return {index: server.read(_PATH.format(*secret)) for index, secret in named.items()}

    try:
        secrets = await reader.ask(read)
    except AccessError:
        return  # most deployers may read no Secret, and HyperShift says the same later
    problems: list[Problem] = []
    for index, secret in secrets.items():
        problems += _signing_key_problems(index, *named[index], secret) if secret else ()
    if problems:
        raise ConfigurationError(problems)


def _named(settings: Settings) -> dict[int, tuple[str, str]]:
    """Namespace and name of the Secret of each HostedCluster that the stack applies, by the cluster's index."""
    return {
        index: (cluster.namespace, cluster.hosted_cluster.service_account_signing_key)
        for index, cluster in enumerate(settings.hosted_clusters)
        if cluster.hosted_cluster is not None and cluster.hosted_cluster.service_account_signing_key is not None
    }


def _signing_key_problems(index: int, namespace: str, name: str, secret: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        pem = base64.b64decode((secret.get("data") or {}).get(_KEY) or "").decode()
        if is_read_by_hypershift(pem):
            return
        held = "an RSA key in another form than PKCS#1, such as the PKCS#8 that OpenSSL 3 writes"
        # By a file: a pipe would write an empty key if OpenSSL failed.
        read = f"kubectl --namespace {namespace} get secret {name} --output jsonpath='{{.data.{_KEY}}}'"
        converted = f"{read} | base64 --decode | openssl rsa -traditional -out {name}.pem"
        fix = f"`{converted} && {_write(namespace, name, f'{name}.pem')}`; then delete {name}.pem"
    except (binascii.Error, UnicodeDecodeError):
        held, fix = f"no text under {_KEY}", _put_key(namespace, name)
    except UnusableKeyError as error:
        held, fix = f"{error} under {_KEY}", _put_key(namespace, name)
    yield Problem(
        place=("hostedClusters", index, "hostedCluster", "serviceAccountSigningKey"),
        rule="signing-key-secret-unusable",
        found=f'"{name}", which holds {held}',
        accepted=f"a Secret in {namespace} with an RSA private key in PEM under {_KEY}, in PKCS#1 (`BEGIN RSA PRIVATE "
        "KEY`): HyperShift reads no other form",
        fix=fix,
    )


def _put_key(namespace: str, name: str) -> str:
    return f"put the key there whose public half the issuer publishes: `{_write(namespace, name, '<file>')}`"


def _write(namespace: str, name: str, file: str) -> str:
    """The command that replaces the key and keeps whatever else the Secret has."""
    return (
        f"kubectl --namespace {namespace} create secret generic {name} --from-file={_KEY}={file} --dry-run=client "
        "--output yaml | kubectl apply --server-side --force-conflicts --filename -"
    )
