"""The one table of the identities of an Azure HostedCluster, managed or self-managed.

Everything that differs between identities is a column here (`catalogue_rows.py` has the columns, `roles.py` the roles);
no other file spells an identity's name. Sources are paths in openshift/hypershift at 3ee9615 unless a repository is
named; `V2/` stands for `control-plane-operator/controllers/hostedcontrolplane/v2/`.

`hypershift` has the resource groups of `support/azureutil/azureutil.go:366-408`. `builtin` has the resources that
Azure/ARO-HCP assigns at (`test/e2e-setup/bicep/modules/non-msi-scoped-assignments.bicep` with `rbacScope: resource`,
as pull request 6575 leaves it) or checks before it creates a cluster (`backend/pkg/utils/validationutils`
`control_plane_identities_permissions_cluster_validation.go`; data plane: pull request 6517), and the managed resource
group, where its resource provider assigns the same role. The zones of `ingress` are in no group of ARO-HCP's customer.
"""

from __future__ import annotations

from typing import Final

from identity import roles
from identity.catalogue_rows import (
    CONTROL_PLANE_PATH,
    CREDENTIALS_FILE_ENV,
    KMS_PATH,
    REFERRED_BY_SUBNET,
    REGISTRY_SUBJECTS,
    VNET_PATH,
    CloudConfigKind,
    ConfigFile,
    ControlPlaneIdentity,
    DataPlaneIdentity,
    FederatedSubject,
    Mount,
    OptionalManagedIdentity,
    PlatformFiles,
    ProofCall,
    RoleGrant,
    Scope,
    WorkloadColumns,
    csi_driver_config,
    csi_subjects,
    managed_group_list,
    only_subject,
)

# Audience of every federated credential (`cmd/infra/azure/identities.go:180-240`).
FEDERATED_AUDIENCE: Final = "openshift"
# The same on a management cluster (managed-services-credentials.md:186).
MANAGEMENT_AUDIENCE: Final = "api://AzureADTokenExchange"
_CNCC = "cloud-network-config-controller"

# `workload`: `cmd/infra/azure/identities.go:105, 180-312`; the token minters of each component have the same subjects.
CONTROL_PLANE: Final = (
    ControlPlaneIdentity(
        field="cloudProvider",
        description="cloud controller manager",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "cloudProvider"),
        component="cloud-provider",
        secret_provider_class="managed-azure-cloud-provider",
        secret_stem="cloud-provider",
        hypershift=RoleGrant(roles.CLOUD_CONTROLLER_MANAGER_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(roles.CLOUD_CONTROLLER_MANAGER_ROLE, (Scope.MANAGED, Scope.SUBNET, *REFERRED_BY_SUBNET)),
        workload=WorkloadColumns("cloud-provider", only_subject("azure-cloud-provider")),
        # V2/cloud_controller_manager/azure/deployment.go:28-38
        mounts=(
            Mount(
                deployment="azure-cloud-controller-manager",
                container="cloud-controller-manager",
                volume="cloud-provider-cert",
                config=ConfigFile(
                    kind=CloudConfigKind.CLOUD_CONTROLLER_MANAGER,
                    secret="azure-cloud-config",
                    volume="cloud-config",
                    directory="/etc/cloud",
                    file="cloud.conf",
                ),
            ),
        ),
        proof=managed_group_list("Microsoft.Network/loadBalancers", "2025-05-01"),
    ),
    ControlPlaneIdentity(
        field="nodePoolManagement",
        description="Cluster API provider (CAPZ)",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "nodePoolManagement"),
        component="capz",
        secret_provider_class="managed-azure-nodepool-management",
        secret_stem="nodepool-mgmt",
        hypershift=RoleGrant(roles.CONTRIBUTOR_ROLE, (Scope.MANAGED, Scope.VNET)),
        builtin=RoleGrant(roles.CLUSTER_API_PROVIDER_ROLE, (Scope.MANAGED, Scope.SUBNET)),
        workload=WorkloadColumns("node-pool-mgmt", only_subject("capi-provider")),
        of_hypershift_operator=True,
        # hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:179-214
        mounts=(
            Mount(
                deployment="capi-provider",
                container="manager",
                volume="nodepool-management-cert",
                cluster_identity=True,
            ),
        ),
        proof=managed_group_list("Microsoft.Compute/virtualMachines", "2024-03-01"),
    ),
    ControlPlaneIdentity(
        field="controlPlaneOperator",
        description="control-plane operator",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "controlPlaneOperator"),
        component="cpo",
        secret_provider_class="managed-azure-cpo",
        secret_stem="cpo",
        hypershift=RoleGrant(roles.CONTRIBUTOR_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(roles.CONTROL_PLANE_OPERATOR_ROLE, (Scope.MANAGED, Scope.NETWORK, Scope.SECURITY_GROUP)),
        workload=WorkloadColumns("control-plane-operator", only_subject("control-plane-operator"), "cpo", private=True),
        of_hypershift_operator=True,
        # V2/controlplaneoperator/deployment.go:239-246
        mounts=(Mount(deployment="control-plane-operator", container="control-plane-operator", volume="cpo-cert"),),
        proof=ProofCall(
            path="/subscriptions/{subscription}/resourcegroups/{managed}",
            api_version="2021-04-01",
            action="Microsoft.Resources/subscriptions/resourceGroups/read",
        ),
    ),
    ControlPlaneIdentity(
        field="imageRegistry",
        description="image-registry operator",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "imageRegistry"),
        component="ciro",
        secret_provider_class="managed-azure-image-registry",
        secret_stem="ciro",
        hypershift=RoleGrant(roles.IMAGE_REGISTRY_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(roles.IMAGE_REGISTRY_ROLE, (Scope.MANAGED, Scope.NETWORK)),
        workload=WorkloadColumns("image-registry", REGISTRY_SUBJECTS),
        # V2/registryoperator/deployment.go:31-41
        mounts=(
            Mount(
                deployment="cluster-image-registry-operator",
                container="cluster-image-registry-operator",
                volume="image-registry-cert",
                credential_env=CREDENTIALS_FILE_ENV,
            ),
        ),
        proof=managed_group_list("Microsoft.Storage/storageAccounts", "2023-05-01"),
        optional=True,
        # support/capabilities/hosted_control_plane_capabilities.go:48-62
        capability="ImageRegistry",
    ),
    ControlPlaneIdentity(
        field="ingress",
        description="ingress operator (DNS)",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "ingress"),
        component="ingress",
        secret_provider_class="managed-azure-ingress",
        secret_stem="ingress",
        hypershift=RoleGrant(roles.INGRESS_ROLE, (Scope.MANAGED, Scope.VNET, Scope.DNS)),
        builtin=RoleGrant(roles.INGRESS_ROLE, (Scope.MANAGED, Scope.SUBNET, Scope.ZONES)),
        workload=WorkloadColumns("ingress", only_subject("ingress-operator", "openshift-ingress-operator")),
        # V2/ingressoperator/deployment.go:44-54
        mounts=(
            Mount(
                deployment="ingress-operator",
                container="ingress-operator",
                volume="ingress-cert",
                credential_env=CREDENTIALS_FILE_ENV,
            ),
        ),
        # The only read that the role grants.
        proof=ProofCall(
            path=f"{VNET_PATH}/subnets/{{subnet}}",
            api_version="2023-11-01",
            action="Microsoft.Network/virtualNetworks/subnets/read",
        ),
    ),
    ControlPlaneIdentity(
        field="network",
        description="cloud network config controller",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "network"),
        component="cncc",
        secret_provider_class="managed-azure-network",
        secret_stem="cncc",
        hypershift=RoleGrant(roles.NETWORK_ROLE, (Scope.MANAGED, Scope.VNET)),
        builtin=RoleGrant(roles.NETWORK_ROLE, (Scope.MANAGED, Scope.NETWORK)),
        workload=WorkloadColumns("network", only_subject(_CNCC, f"openshift-{_CNCC}")),
        # openshift/cluster-network-operator bindata/cloud-network-config-controller/managed/controller.yaml
        mounts=(
            Mount(
                deployment=_CNCC,
                container="controller",
                volume="cncc-cert",
                path="/var/run/secrets/azure",
                credential_env="ARO_HCP_CLIENT_CREDENTIALS_PATH",
                # hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:276-340; the ConfigMap
                # is the network operator's (pkg/network/cloud_network.go).
                platform=PlatformFiles(
                    secret="cloud-network-config-controller-creds",
                    config_map="cloud-network-config-controller-kube-cloud-config",
                ),
            ),
        ),
        proof=ProofCall(path=VNET_PATH, api_version="2024-05-01", action="Microsoft.Network/virtualNetworks/read"),
    ),
    ControlPlaneIdentity(
        field="disk",
        description="Azure Disk CSI controller",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "disk"),
        component="azure-disk",
        secret_provider_class="managed-azure-disk-csi",
        secret_stem="azure-disk",
        hypershift=RoleGrant(roles.DISK_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(roles.DISK_ROLE, (Scope.MANAGED,)),
        workload=WorkloadColumns("disk", csi_subjects("azure-disk-csi-driver")),
        # openshift/csi-operator pkg/driver/azure-disk/azure_disk.go:216-224,411-435
        mounts=(
            Mount(
                deployment="azure-disk-csi-driver-controller",
                container="csi-driver",
                volume="azure-disk",
                config=csi_driver_config("azure-disk-csi-config"),
            ),
        ),
        proof=managed_group_list("Microsoft.Compute/disks", "2025-01-02"),
    ),
    ControlPlaneIdentity(
        field="file",
        description="Azure File CSI controller",
        hosted_cluster_path=(*CONTROL_PLANE_PATH, "file"),
        component="azure-file",
        secret_provider_class="managed-azure-file-csi",
        secret_stem="azure-file",
        hypershift=RoleGrant(roles.FILE_ROLE, (Scope.MANAGED, Scope.NSG, Scope.VNET)),
        builtin=RoleGrant(roles.FILE_ROLE, (Scope.MANAGED, Scope.NETWORK, *REFERRED_BY_SUBNET)),
        workload=WorkloadColumns("file", csi_subjects("azure-file-csi-driver")),
        # openshift/csi-operator pkg/driver/azure-file/azure_file.go:177-185,267-291
        mounts=(
            Mount(
                deployment="azure-file-csi-driver-controller",
                container="csi-driver",
                volume="azure-file",
                config=csi_driver_config("azure-file-csi-config"),
            ),
        ),
        proof=managed_group_list("Microsoft.Storage/storageAccounts", "2025-01-01"),
    ),
    ControlPlaneIdentity(
        field="kms",
        description="etcd encryption (KMS plugin of kube-apiserver)",
        hosted_cluster_path=(*KMS_PATH, "kms"),
        # HyperShift assigns nothing to this identity and so has no RBAC key for it.
        component="kms",
        secret_provider_class="managed-azure-kms",
        secret_stem="kms",
        hypershift=RoleGrant(roles.KEY_VAULT_CRYPTO_USER_ROLE, (Scope.KMS_VAULT,)),
        builtin=RoleGrant(roles.KEY_VAULT_CRYPTO_USER_ROLE, (Scope.KMS_VAULT,)),
        workload=WorkloadColumns("kms", only_subject("kms-provider"), path=(*KMS_PATH, "workloadIdentity")),
        of_hypershift_operator=True,
        mounts=(
            # V2/kas/kms/azure.go:187-204,236-263,343-353
            Mount(
                deployment="kube-apiserver",
                container="azure-kms-provider-active",
                volume="kms-cert",
                config=ConfigFile(
                    kind=CloudConfigKind.KMS_PLUGIN,
                    secret="azure-kms-config",
                    volume="azure-kms-credentials",
                    directory="/etc/kubernetes",
                    file="azure.json",
                ),
            ),
            # V2/controlplaneoperator/deployment.go:248-256: test-encrypts for the condition ValidAzureKMSConfig
            Mount(
                deployment="control-plane-operator",
                container="control-plane-operator",
                volume="kms-cert",
                path="/mnt/kms",
            ),
        ),
        proof=ProofCall(
            method="POST",
            path="/keys/{key}/{key_version}/encrypt",
            api_version="2025-07-01",
            action="Microsoft.KeyVault/vaults/keys/encrypt/action",
            body={"alg": "RSA-OAEP-256", "value": "dGV4dA"},
            vault=True,
        ),
        setting="kms",
    ),
    ControlPlaneIdentity(
        field="etcdBackup",
        description="upload of etcd backups (HCPEtcdBackup)",
        # The HCPEtcdBackup names a Secret with the document (api/hypershift/v1beta1/etcdbackup_types.go:176-179).
        hosted_cluster_path=None,
        # HyperShift assigns nothing to this identity and so has no RBAC key for it.
        component="etcd-backup",
        secret_provider_class="managed-azure-etcd-backup",
        secret_stem="etcd-backup",
        # docs/content/how-to/disaster-recovery/etcd-snapshot-backup/managed-services-credentials.md:198-207
        hypershift=RoleGrant(roles.STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE, (Scope.BACKUP_STORAGE,)),
        builtin=RoleGrant(roles.STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE, (Scope.BACKUP_STORAGE,)),
        # hypershift-operator/controllers/etcdbackup/reconciler.go:62-74,926-1061; etcd-upload/azure_uploader.go:15-21
        mounts=(
            Mount(
                deployment="etcd-backup",
                container="upload",
                volume="backup-credentials",
                path="/etc/etcd-backup-creds",
                file="credentials",
            ),
        ),
        # The only read at ARM that the role grants.
        proof=ProofCall(
            path="{backup_storage}/blobServices/default/containers",
            api_version="2023-05-01",
            action="Microsoft.Storage/storageAccounts/blobServices/containers/read",
        ),
        optional=True,
        enabled_by_default=False,
    ),
)


# Subjects: `cmd/infra/azure/identities.go:180-240`, which holds every subject production uses as well.
DATA_PLANE: Final = (
    DataPlaneIdentity(
        field="imageRegistryMSIClientID",
        name="image-registry",
        description="image registry in the guest cluster",
        component="ciroWI",
        hypershift=RoleGrant(roles.IMAGE_REGISTRY_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(roles.IMAGE_REGISTRY_ROLE, (Scope.MANAGED, Scope.NETWORK)),
        subjects=REGISTRY_SUBJECTS,
    ),
    DataPlaneIdentity(
        field="diskMSIClientID",
        name="disk",
        description="Azure Disk CSI driver in the guest cluster",
        component="azure-diskWI",
        hypershift=RoleGrant(roles.DISK_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(roles.DISK_ROLE, (Scope.MANAGED,)),
        subjects=csi_subjects("azure-disk-csi-driver"),
    ),
    DataPlaneIdentity(
        field="fileMSIClientID",
        name="file",
        description="Azure File CSI driver in the guest cluster",
        component="azure-fileWI",
        hypershift=RoleGrant(roles.FILE_ROLE, (Scope.MANAGED,)),
        builtin=RoleGrant(roles.FILE_ROLE, (Scope.MANAGED, Scope.NETWORK, *REFERRED_BY_SUBNET)),
        subjects=csi_subjects("azure-file-csi-driver"),
    ),
)

# The managed identities of a hosted cluster with workload identities.
WORKLOAD: Final = tuple(row.federated for row in CONTROL_PLANE if row.federated is not None)
# Of both authentication modes: every managed identity that service accounts of a hosted cluster use.
FEDERATED_IDENTITIES: Final = (*DATA_PLANE, *WORKLOAD)

# Disabled until `managedIdentities` of a hosted cluster names them.
OPTIONAL: Final = (
    # api/hypershift/v1beta1/azure.go:470-480,565-620;
    # control-plane-operator/controllers/hostedcontrolplane/v2/cloud_controller_manager/azure/config.go:31-33
    OptionalManagedIdentity(
        field="acrPull",
        name="acr-pull",
        description="image pulls of the nodes from a container registry",
        component="acr-pull",
        grants=(RoleGrant(roles.ACR_PULL_ROLE, (Scope.REGISTRY,)),),
        attached_by="nodePoolManagement",
    ),
    # kubernetes-sigs/external-dns docs/tutorials/azure.md, issues 813 and 1973: it lists the zones of a resource group
    # and writes into its own. HyperShift's own script uses an application's password instead, with Reader and
    # Contributor at the zone (contrib/managed-azure/setup_external_dns.sh:34-53).
    OptionalManagedIdentity(
        field="externalDNS",
        name="external-dns",
        description="external DNS of HyperShift's operator",
        component="external-dns",
        grants=(
            RoleGrant(roles.DNS_ZONE_CONTRIBUTOR_ROLE, (Scope.EXTERNAL_ZONE,)),
            RoleGrant(roles.READER_ROLE, (Scope.EXTERNAL_ZONE_GROUP,)),
        ),
        # cmd/install/assets/hypershift_operator.go:115-125,290-330: one Deployment with one Secret of credentials.
        used_once="HyperShift's operator runs one external DNS with one identity",
    ),
    # docs/content/how-to/disaster-recovery/etcd-snapshot-backup/managed-services-credentials.md:164-232: one identity
    # for Velero and for the jobs that it starts.
    OptionalManagedIdentity(
        field="velero",
        name="velero",
        description="backups by Velero (OADP)",
        component="velero",
        grants=(RoleGrant(roles.STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE, (Scope.BACKUP_STORAGE,)),),
        subjects=(
            FederatedSubject("velero", "system:serviceaccount:openshift-adp:velero"),
            FederatedSubject("etcd-backup-job", "system:serviceaccount:hypershift:etcd-backup-job"),
        ),
        # hypershift-operator/controllers/etcdbackup/reconciler.go:578-600: the first client id stays.
        used_once="the backup jobs of HyperShift's operator have one service account, which keeps its first client id",
    ),
)
