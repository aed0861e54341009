"""The table of the errors that a person on call reads.

The doctor, the sign-in to AKS, the rehearsal and `idstack explain` take their words from here, and so does
`docs/reference/symptoms.md`. The probe's image has it, too, so it imports the standard library alone.

Codes of Entra ID: learn.microsoft.com/entra/identity-platform/reference-error-codes. Refusals of the vault: the sources
in `cloud/localcloud/azure/keyvault/errors.py`, Azure/AzureKeyVault issue 19. Mounts:
kubernetes-sigs/secrets-store-csi-driver, Azure/secrets-store-csi-driver-provider-azure, azidentity. Conditions:
openshift/hypershift `api/hypershift/v1beta1/hostedcluster_conditions.go`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from identity.credentials.symptom import Family, Symptom

_SIGN_INS: Final = "the sign-in logs of the service principal in Entra ID"
_FEDERATION: Final = "`az ad app federated-credential list --id <client id>`, beside the token's `iss`, `sub`, `aud`"
_ISSUER: Final = "compare it with `docs/explanation/issuer.md`, then {repair}"
_ISSUERS_KEY: Final = "have the federated token signed with a key that its issuer publishes"
_SIGN_INS_OF_PERSON: Final = "the sign-in logs of the person in Entra ID"
_EVENTS: Final = "`kubectl get events --namespace <namespace> --field-selector reason=FailedMount`"
_VAULT_RULES: Final = "`az keyvault show --name <vault> --query properties.networkAcls`"
_POD: Final = "`kubectl describe pod --namespace <namespace> <pod>`"
_HOSTED_CLUSTER: Final = "`kubectl describe hostedcluster --namespace clusters <cluster>`"
_NODE_NETWORK: Final = "let the nodes reach the vault: look at DNS, the private endpoint and the routes"

_sign_in = partial(Symptom, family=Family.ENTRA_ID)
_vault = partial(Symptom, family=Family.VAULT)
_mount = partial(Symptom, family=Family.MOUNT)
_pod = partial(Symptom, family=Family.POD)
_condition = partial(Symptom, family=Family.CONDITION)
_run = partial(Symptom, family=Family.RUN)

SYMPTOMS: Final[tuple[Symptom, ...]] = (
    _sign_in(
        name="AADSTS700027",
        cause="the certificate is not registered on the application",
        evidence="`az ad app credential list --cert --id <client id>`, beside `.venv/bin/idstack status`",
        fix="if its key has leaked, `{rotate} --revoke --now`; if it was removed by mistake, `{rotate} --register`",
        login="register the certificate on the application, or sign in with the one that is registered",
    ),
    _sign_in(
        name="AADSTS7000112",
        cause="the service principal is disabled",
        evidence="`az ad sp show --id <client id> --query accountEnabled`, and the audit log for who disabled it",
        fix="enable it: `az ad sp update --id {client} --set accountEnabled=true`",
    ),
    _sign_in(
        name="AADSTS700016",
        cause="the tenant has no such application",
        evidence="`az ad app show --id <client id>`, signed in to this tenant and to others",
        fix="{recover} makes another application, with a new credential and its roles",
        login="correct the client id, or the tenant: the application is not in this one",
    ),
    _sign_in(
        name="AADSTS7000229",
        cause="the application has no service principal in this tenant",
        evidence="`az ad sp show --id <client id>`",
        fix="{repair} makes it again",
        login="create the application's service principal in this tenant (`az ad sp create --id <client id>`)",
    ),
    _sign_in(
        name="AADSTS7000222",
        cause="the certificate or client secret has expired",
        evidence="`.venv/bin/idstack status`, column with the end of the certificate",
        fix="deliver another certificate: {renewal}",
        login="the secret has expired: make a new one",
    ),
    _sign_in(
        name="AADSTS700024",
        cause="the assertion is not valid yet, or no longer: a clock is wrong, or a federated token is too old",
        evidence="`date -u` on the node and here",
        fix="correct the clock of the node",
        login="the federated token is too old: have it renewed, and check this machine's clock",
    ),
    _sign_in(
        name="AADSTS90002",
        cause="there is no such tenant in this cloud",
        evidence="`tenantId` of the stack's file, and `az account show --query tenantId`",
        fix="correct `tenantId`, then {up}",
        login="correct the tenant, or the authority host if the tenant is in another cloud",
    ),
    _sign_in(
        name="AADSTS900023",
        cause="the tenant is neither an id nor a domain name",
        evidence="`tenantId` of the stack's file",
        fix="correct `tenantId`, then {up}",
        login="correct the tenant: it is neither an id nor a domain name",
    ),
    _sign_in(
        name="AADSTS53003",
        cause="a Conditional Access policy refuses the sign-in",
        evidence=f"{_SIGN_INS}, which name the policy",
        fix="change the policy for workload identities so that it admits the identity from the nodes' addresses",
        login="Conditional Access forbids this way to sign in: use a service principal or `--login azure-cli`",
    ),
    _sign_in(
        name="AADSTS7000215",
        cause="the client secret is wrong",
        evidence="the value that the client sends, beside the secret's id in the portal",
        fix="configure the value of the secret, not its id",
    ),
    _sign_in(
        name="AADSTS70021",
        cause="no federated credential of the identity fits the token",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's issuer, subject and audience to the identity",
    ),
    _sign_in(
        name="AADSTS700211",
        cause="no federated credential has the token's issuer: HyperShift's default issuer, or a trailing slash",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's issuer to the identity",
    ),
    _sign_in(
        name="AADSTS700213",
        cause="no federated credential has the token's subject, which is the service account",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="add a federated credential with the token's subject to the identity",
    ),
    _sign_in(
        name="AADSTS7002138",
        cause="the token's subject differs from the federated credential's in letter case",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="correct the letter case of the federated credential's subject: it has to be as in the token",
    ),
    _sign_in(
        name="AADSTS700212",
        cause="no federated credential has the token's audience (`openshift` in a hosted cluster)",
        evidence=_FEDERATION,
        fix=_ISSUER,
        login="have the token issued for the audience of the federated credential (api://AzureADTokenExchange)",
    ),
    _sign_in(
        name="AADSTS7000272",
        cause="the issuer does not publish the key that signed the token",
        evidence="`curl <issuerURL>/openid/v1/jwks`, and `serviceAccountSigningKey` of the HostedCluster",
        fix="give the HostedCluster the signing key whose public half the issuer publishes, then {repair}",
        login=_ISSUERS_KEY,
    ),
    _sign_in(
        name="AADSTS50013",
        cause="the signature of the assertion cannot be verified",
        evidence="`curl <issuerURL>/openid/v1/jwks`, and the key id in the token's header",
        fix="give the HostedCluster the signing key whose public half the issuer publishes, then {repair}",
        login=_ISSUERS_KEY,
    ),
    _sign_in(
        name="AADSTS90061",
        cause="Entra ID cannot reach the issuer's documents",
        evidence="`curl <issuerURL>/.well-known/openid-configuration` from outside of your network",
        fix="open the issuer's storage account to the public, then {repair}",
        login="make the issuer's metadata public: Entra ID does not reach it",
    ),
    _sign_in(
        name="AADSTS500011",
        cause="the tenant does not know the resource that the token is for",
        evidence="`cloud` of the stack's file, and the authority host",
        fix="correct `cloud`, then {up}",
        login="the tenant does not know the server application: give the authority host of the cluster's cloud",
    ),
    _sign_in(
        name="AADSTS50076",
        cause="the tenant asks this person for a second factor, or to register one (50079)",
        evidence=_SIGN_INS_OF_PERSON,
        fix="the tenant asks for a second factor: sign in with `az login`, or use a service principal",
        words=("AADSTS50076", "AADSTS50079"),
    ),
    _sign_in(
        name="AADSTS50105",
        cause="the application lets in only those who are assigned to it",
        evidence="users and groups of the enterprise application in Entra ID",
        fix="assign the identity to the server application, which lets nobody else in",
    ),
    _sign_in(
        name="AADSTS700082",
        cause="a person's sign-in has ended: 90 days without use, a limit of the tenant, or a new password",
        evidence=_SIGN_INS_OF_PERSON,
        fix="sign in again with `az login`",
        words=("AADSTS700082", "AADSTS70043", "AADSTS50173"),
    ),
    _sign_in(
        name="AADSTS530003",
        cause="a Conditional Access policy admits the person from a managed device only",
        evidence=f"{_SIGN_INS_OF_PERSON}, which name the policy",
        fix="run `az login` on such a device, without `--use-device-code`; or use a service principal",
    ),
    _sign_in(
        name="AADSTS65001",
        cause="nobody has consented to what the application asks for in this tenant",
        evidence="the permissions of the enterprise application in Entra ID",
        fix="let an administrator consent: `az ad app permission admin-consent --id {client}`",
    ),
    # A refusal with its reason comes before those with only a status.
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
        name="SeveralIdentities",
        cause="the nodes have several managed identities, and the SecretProviderClass names none of them",
        evidence="`kubectl get secretproviderclass --namespace <namespace> <class> -o yaml`: `userAssignedIdentityID`",
        fix="name the key-vault-user there: {objects}",
        words=("Multiple user assigned identities exist",),
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
        fix="`.venv/bin/idstack explain` with the message; the driver's own log is `kubectl logs --namespace "
        "kube-system --selector app=secrets-store-csi-driver --container secrets-store`",
    ),
    _mount(
        name="MountRotationFailed",
        cause="the pod keeps an old version of the secret, because the driver cannot fetch the new one",
        evidence="`kubectl get events --namespace <namespace> --field-selector reason=MountRotationFailed`",
        fix="`.venv/bin/idstack explain` with the message; restart no pod before, for a new one would not mount",
    ),
    _pod(
        name="ContainerCreating",
        cause="the pod waits for a volume, which may be the credential's",
        evidence=_EVENTS,
        fix="`.venv/bin/idstack doctor --pod <namespace>/<pod>` names the volume and the reason",
    ),
    _pod(
        name="CrashLoopBackOff",
        cause="the container keeps exiting; its credential is mounted, or it would not have started",
        evidence="`kubectl logs --namespace <namespace> <pod> --previous`",
        fix="`.venv/bin/idstack explain` with the AADSTS code or refusal in its log",
    ),
    _pod(
        name="ProofCallRefused",
        cause="the pod signs in, and its identity lacks a role in Azure",
        evidence="the log of the pod, which names action and scope; `.venv/bin/idstack doctor`, which compares roles",
        fix="{repair}; Azure takes up to ten minutes to apply a role",
        words=("AuthorizationFailed",),
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
        fix="compare the HostedCluster with `.venv/bin/idstack export hypershift --stack <stack>`",
    ),
    _condition(
        name="ValidHostedControlPlaneConfiguration",
        cause="the control-plane operator does not accept the specification",
        evidence=_HOSTED_CLUSTER,
        fix="compare the HostedCluster with `.venv/bin/idstack export hypershift --stack <stack>`",
    ),
    _condition(
        name="ValidAzureKMSConfig",
        cause="the control-plane operator cannot encrypt with the key as the identity `kms`. Unknown is as expected "
        "without KMS, and with a vault behind a private endpoint",
        evidence=_HOSTED_CLUSTER,
        fix="`.venv/bin/idstack doctor --cluster <cluster> --identity kms`",
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
        fix="`.venv/bin/idstack doctor --cluster <cluster> --identity cloudProvider`",
    ),
    _condition(
        name="EtcdAvailable",
        cause="etcd has no quorum yet: its pods wait, or its volumes are missing, which `disk` makes",
        evidence="`kubectl get pods,pvc --namespace <control-plane namespace>`",
        fix="`.venv/bin/idstack doctor --cluster <cluster>`",
    ),
    _condition(
        name="KubeAPIServerAvailable",
        cause="the API server's pod does not run: it waits for etcd, or for the credential of `kms`",
        evidence="`kubectl get pods --namespace <control-plane namespace> --selector app=kube-apiserver`",
        fix="`.venv/bin/idstack doctor --cluster <cluster> --identity kms`",
    ),
    _run(
        name="RequestDisallowedByPolicy",
        cause="an assignment of Azure Policy forbids the resource as it is configured",
        evidence="the message, which names the assignment; `az policy assignment list`",
        fix="configure what it asks for, such as `tags` or `location`, or ask its owner for an exemption; then {up}",
    ),
    _run(
        name="ScopeLocked",
        cause="a management lock forbids the change",
        evidence="`az lock list`",
        fix="let an Owner or User Access Administrator of its scope remove it, then {up}",
    ),
    _run(
        name="MissingSubscriptionRegistration",
        cause="the subscription does not have a resource provider",
        evidence="the message, which names it; `az provider show --namespace <name> --query registrationState`",
        fix="`az provider register --wait --namespace <name>`, then {up}",
        words=("MissingSubscriptionRegistration", "not registered to use namespace"),
    ),
    _run(
        name="Request_ResourceNotFound",
        cause="an application or service principal of the stack was deleted in Entra ID",
        evidence="the message, which names it; `az ad app show --id <object id>`",
        fix="{recover} makes another one; for 30 days the portal can restore an application instead, then {up}",
    ),
    _run(
        name="CredentialInvalidLifetimeAsPerAppPolicy",
        cause="an app management policy of the tenant forbids the certificate, such as its lifetime",
        evidence="`az rest --url https://graph.microsoft.com/v1.0/policies/defaultAppManagementPolicy`",
        fix="set `credentials.lifetimeDays` to what it allows, or ask for an exemption of the applications; then {up}",
        words=("CredentialInvalidLifetimeAsPerAppPolicy", "CredentialTypeNotAllowedAsPerAppPolicy"),
    ),
    _run(
        name="LinkedAuthorizationFailed",
        cause="the deployer lacks a role in Azure",
        evidence="the message, which names action and scope; `az role assignment list --all --assignee <object id>`",
        fix="`.venv/bin/idstack rbac <object id> --azure --stack <stack>` prints all that it needs; a new assignment "
        "takes effect within ten minutes, then {up}",
        words=(r"\b(Linked)?AuthorizationFailed\b",),
    ),
    _run(
        name="QuotaExceeded",
        cause="a quota or limit of Azure is reached",
        evidence="the message, which names it; `az quota usage list --scope <scope>`",
        fix="delete what is not used (`.venv/bin/idstack sweep --stack <stack>` lists leftovers), or request more "
        "under Quotas in the portal; then {up}",
        words=(r"\b\w*(QuotaExceeded|LimitExceeded)\b",),
    ),
    _run(
        name="VaultAlreadyExists",
        cause="a name that is unique in all of Azure is taken by another owner",
        evidence="`az keyvault check-name --name <vault>`, `az storage account check-name --name <account>`",
        fix="set another `vault.name`, or `issuerName` of the hosted cluster, then {up}",
        words=("VaultAlreadyExists", "StorageAccountAlreadyTaken"),
    ),
)


def fix_of_read(message: str) -> str:
    """The fix of a read of Azure that failed with this message; a role is none where nobody was refused."""
    row = find(message, Family.ENTRA_ID, Family.RUN)
    if row is not None and row.name != "LinkedAuthorizationFailed":
        provider = re.search(r"namespace '([\w.]+)'", message)
        return row.login_fix.replace("<name>", provider[1] if provider else "<name>")
    if row is not None or re.search(r"\b403\b", message):
        return "let the identity that runs this read it (role Reader), then try again"
    return "see to the sign-in and the network (proxy, firewall), then try again"


def find(text: str, *families: Family) -> Symptom | None:
    """The first row of these families (by default of all) that the text matches."""
    return next((row for row in SYMPTOMS if (not families or row.family in families) and row.is_in(text)), None)
