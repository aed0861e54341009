"""The symptoms that a cluster shows: refusals of the vault, events of mounts, states of pods, conditions.

Refusals: the sources in `cloud/localcloud/azure/keyvault/errors.py`, Azure/AzureKeyVault issue 19. Mounts:
kubernetes-sigs/secrets-store-csi-driver, Azure/secrets-store-csi-driver-provider-azure, azidentity. Conditions:
openshift/hypershift `api/hypershift/v1beta1/hostedcluster_conditions.go`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from identity.credentials.symptom import Family, Symptom

_EVENTS: Final = "`kubectl get events --namespace <namespace> --field-selector reason=FailedMount`"
_VAULT_RULES: Final = "`az keyvault show --name <vault> --query properties.networkAcls`"
_POD: Final = "`kubectl describe pod --namespace <namespace> <pod>`"
_HOSTED_CLUSTER: Final = "`kubectl describe hostedcluster --namespace clusters <cluster>`"
_ISSUER: Final = "compare it with `docs/explanation/issuer.md`, then {repair}"
_NODE_NETWORK: Final = "let the nodes reach the vault: look at DNS, the private endpoint and the routes"

_vault = partial(Symptom, family=Family.VAULT)
_mount = partial(Symptom, family=Family.MOUNT)
_pod = partial(Symptom, family=Family.POD)
_condition = partial(Symptom, family=Family.CONDITION)

# A refusal with its reason comes before those with only a status.
ROWS: Final = (
    _vault(
        name="SecretDisabled",
        cause="the current version of the secret is disabled",
        evidence="`az keyvault secret list --vault-name <vault>`, member `attributes.enabled`",
        fix="`az keyvault secret set-attributes {secret} --enabled true`",
        words=("SecretDisabled", "not allowed on a disabled secret"),
    ),
    _vault(
        name="SecretExpired",
        cause="the secret is past its `exp`. Azure documents that a read still works; some answers refuse it",
        evidence="`az keyvault secret list --vault-name <vault>`, member `attributes.expires`",
        fix="deliver another certificate: {renewal}",
        words=("SecretExpired", "not allowed on an expired secret"),
    ),
    _vault(
        name="SecretNotYetValid",
        cause="the secret is before its `nbf`. Azure documents that a read still works; nobody signs in with it yet",
        evidence="`az keyvault secret list --vault-name <vault>`, member `attributes.notBefore`, and the clocks",
        fix="correct the clock, or wait; if somebody edited `nbf`: {renewal}",
        words=("SecretNotYetValid", "secret that is not yet valid"),
    ),
    _vault(
        name="ForbiddenByRbac",
        cause="the reader has no role on the vault or secret, or got it only minutes ago",
        evidence="`az role assignment list --all --assignee <client id>`; the reader of mounts is the key-vault-user",
        fix="wait ten minutes for a new role; a role that is gone comes back with {repair}",
        words=("ForbiddenByRbac", "Caller is not authorized to perform action on resource"),
    ),
    _vault(
        name="ForbiddenByFirewall",
        cause="the vault's firewall does not admit the address of the node",
        evidence=_VAULT_RULES,
        fix="add the nodes' subnet to `vault.allowedSubnetIds`, or their address to `vault.allowedIpRanges`, then {up}",
        words=("ForbiddenByFirewall", "Client address is not authorized"),
    ),
    _vault(
        name="ForbiddenByConnection",
        cause="the vault has no public access, and the request came by no approved private endpoint",
        evidence="`az keyvault show --name <vault> --query properties.publicNetworkAccess`, and DNS on the node",
        fix=_NODE_NETWORK,
        words=("ForbiddenByConnection", "Public network access is disabled", "not an approved private link"),
    ),
    _vault(
        name="AccessDenied",
        cause="the vault uses access policies, so roles have no effect",
        evidence="`az keyvault show --name <vault> --query properties.enableRbacAuthorization`",
        fix="`az keyvault update --name <vault> --enable-rbac-authorization true`",
        words=("AccessDenied", "does not have secrets get permission"),
    ),
    _vault(
        name="SecretNotFound",
        cause="the vault that the nodes reach has no such secret: it was deleted, or DNS leads to another vault",
        evidence="`az keyvault secret list-deleted --vault-name <vault>`, and DNS on the node",
        fix="recover it with `az keyvault secret recover {secret}`; else look at DNS and the private endpoint",
        words=("SecretNotFound", "RESPONSE 404"),
    ),
    _vault(
        name="RESPONSE 401",
        cause="the vault trusts another tenant than the one that issued the token",
        evidence="`az keyvault show --name <vault> --query properties.tenantId`",
        fix="compare the vault's tenant with the nodes', then {repair}",
    ),
    _vault(
        name="RESPONSE 403",
        cause="the vault refuses the reader, and the message does not say why: a role, the firewall, or the secret",
        evidence=f"{_EVENTS}: the `innererror` code, if there is one; {_VAULT_RULES}",
        fix="if the key-vault-user has its role, wait ten minutes, then look at the vault's network rules",
    ),
    _mount(
        name="IdentityNotAssigned",
        cause="the key-vault-user is not attached to the scale sets of the nodes",
        evidence="`az vmss identity show --resource-group <node resource group> --name <scale set>`",
        fix="assign the key-vault-user to the nodes: {attach}",
        words=("the requested identity isn't assigned", "Identity not found"),
    ),
    _mount(
        name="WrongEncoding",
        cause="the stored value is not in the `objectEncoding` of the SecretProviderClass",
        evidence="`kubectl get secretproviderclass --namespace <namespace> <class> -o yaml`",
        fix="deliver it in that encoding: {renewal}",
        words=("decoding of",),
    ),
    _mount(
        name="NoSecretProviderClass",
        cause="the SecretProviderClass that the volume names does not exist in the pod's namespace",
        evidence="`kubectl get secretproviderclass --namespace <namespace>`",
        fix="create it: {objects}",
        words=("failed to get secretproviderclass",),
    ),
    _mount(
        name="NoDriver",
        cause="the node has no Secrets Store CSI driver",
        evidence="`kubectl get pods --namespace kube-system --selector app=secrets-store-csi-driver -o wide`",
        fix="install the Secrets Store CSI driver (AKS: its add-on)",
        words=("not found in the list of registered CSI drivers",),
    ),
    _mount(
        name="NoProvider",
        cause="the node has no Azure provider for the Secrets Store CSI driver",
        evidence="`kubectl get pods --namespace kube-system --selector app=secrets-store-provider-azure -o wide`",
        fix="install the driver's Azure provider (AKS: the same add-on)",
        words=("provider not found",),
    ),
    _mount(
        name="VaultNotResolved",
        cause="the nodes cannot resolve the vault's name",
        evidence="`nslookup <vault>.vault.azure.net` in a pod of that node",
        fix=_NODE_NETWORK,
        words=("no such host",),
    ),
    _mount(
        name="VaultNotReached",
        cause="the nodes cannot reach the vault",
        evidence="the network policies and routes of the nodes, and `kubectl logs` of the driver's Azure provider",
        fix=_NODE_NETWORK,
        words=("i/o timeout", "connection refused", "context deadline exceeded"),
    ),
    _mount(
        name="VolumeNotReadOnly",
        cause="the pod's csi volume is not read-only, which the driver requires",
        evidence=_POD,
        fix="set `readOnly: true` on the pod's csi volume",
        words=("Readonly is not true",),
    ),
    _mount(
        name="NoKubernetesSecret",
        cause="the pod mounts a Kubernetes Secret that does not exist, such as the cloud configuration",
        evidence="`kubectl get secrets --namespace <namespace>`",
        fix="make the Kubernetes Secret with the cloud configuration: {objects}",
        words=(r'secret "[^"]+" not found',),
    ),
    _mount(
        name="FailedMount",
        cause="a volume of the pod is not mounted, and the message of the event says why",
        evidence=_EVENTS,
        fix="`idstack explain` with the message; the driver's own log is `kubectl logs --namespace kube-system "
        "--selector app=secrets-store-csi-driver --container secrets-store`",
    ),
    _mount(
        name="MountRotationFailed",
        cause="the pod keeps an old version of the secret, because the driver cannot fetch the new one",
        evidence="`kubectl get events --namespace <namespace> --field-selector reason=MountRotationFailed`",
        fix="`idstack explain` with the message; a new pod would not mount at all, so restart none before it is fixed",
    ),
    _pod(
        name="ContainerCreating",
        cause="the pod waits for a volume, which may be the credential's",
        evidence=_EVENTS,
        fix="`idstack doctor --pod <namespace>/<pod>` names the volume and the reason",
    ),
    _pod(
        name="CrashLoopBackOff",
        cause="the container keeps exiting; its credential is mounted, or it would not have started",
        evidence="`kubectl logs --namespace <namespace> <pod> --previous`",
        fix="`idstack explain` with the AADSTS code or refusal in its log",
    ),
    _pod(
        name="ImagePullBackOff",
        cause="the node cannot pull the image",
        evidence=_POD,
        fix="correct the image, or the node's right to pull it (the probe's is `probe.image`), then {up}",
        words=("ImagePullBackOff", "ErrImagePull"),
    ),
    _pod(
        name="CreateContainerConfigError",
        cause="a Secret or ConfigMap that the container's variables name does not exist",
        evidence=_POD,
        fix="create it: {objects}",
    ),
    _condition(
        name="ValidConfiguration",
        cause="the HostedCluster's specification is invalid, or names a Secret that is missing or malformed",
        evidence=_HOSTED_CLUSTER,
        fix="compare the HostedCluster with `idstack export hypershift --stack <stack>`",
    ),
    _condition(
        name="ValidHostedControlPlaneConfiguration",
        cause="the control-plane operator does not accept the specification",
        evidence=_HOSTED_CLUSTER,
        fix="compare the HostedCluster with `idstack export hypershift --stack <stack>`",
    ),
    _condition(
        name="ValidAzureKMSConfig",
        cause="the control-plane operator cannot encrypt with the key as the identity `kms`. Unknown is as expected "
        "without KMS, and with a vault behind a private endpoint",
        evidence=_HOSTED_CLUSTER,
        fix="`idstack doctor --cluster <cluster> --identity kms`",
    ),
    _condition(
        name="ValidOIDCConfiguration",
        cause="the issuer does not answer; HyperShift sets it on AWS only",
        evidence="`curl <issuerURL>/.well-known/openid-configuration`",
        fix=_ISSUER,
    ),
    _condition(
        name="InfrastructureReady",
        cause="load balancers or addresses are missing, which `cloudProvider` makes",
        evidence=_HOSTED_CLUSTER,
        fix="`idstack doctor --cluster <cluster> --identity cloudProvider`",
    ),
    _condition(
        name="EtcdAvailable",
        cause="etcd has no quorum yet: its pods wait, or its volumes are missing, which `disk` makes",
        evidence="`kubectl get pods,pvc --namespace <control-plane namespace>`",
        fix="`idstack doctor --cluster <cluster>`",
    ),
    _condition(
        name="KubeAPIServerAvailable",
        cause="the API server's pod does not run: it waits for etcd, or for the credential of `kms`",
        evidence="`kubectl get pods --namespace <control-plane namespace> --selector app=kube-apiserver`",
        fix="`idstack doctor --cluster <cluster> --identity kms`",
    ),
)
