"""Values that several rows of the catalogue share: paths, service accounts, proof calls."""

from __future__ import annotations

from typing import Final

from identity.catalogue_rows import (
    AUTHENTICATION_PATH,
    CloudConfigKind,
    ConfigFile,
    FederatedSubject,
    ProofCall,
    Scope,
)

CONTROL_PLANE_PATH: Final = (*AUTHENTICATION_PATH, "managedIdentities", "controlPlane")
KMS_PATH: Final = ("secretEncryption", "kms", "azure")
VNET_PATH: Final = (
    "/subscriptions/{subscription}/resourceGroups/{vnet_group}/providers/Microsoft.Network/virtualNetworks/{vnet}"
)
# Read by the ingress and the image-registry operator (support/config/constants.go:89-112).
CREDENTIALS_FILE_ENV: Final = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH"
# An update of a subnet needs `join/action` on every resource that the subnet refers to.
REFERRED_BY_SUBNET: Final = (Scope.SECURITY_GROUP, Scope.ROUTE_TABLE, Scope.NAT_GATEWAY)
REGISTRY_SUBJECTS: Final = (
    FederatedSubject("registry", "system:serviceaccount:openshift-image-registry:registry"),
    FederatedSubject("operator", "system:serviceaccount:openshift-image-registry:cluster-image-registry-operator"),
)


def only_subject(namespace: str, account: str) -> tuple[FederatedSubject, ...]:
    """The one subject of an identity."""
    return (FederatedSubject("", f"system:serviceaccount:{namespace}:{account}"),)


def kube_system(account: str) -> tuple[FederatedSubject, ...]:
    """The one subject of an identity of the control plane."""
    return only_subject("kube-system", account)


def csi_subjects(driver: str) -> tuple[FederatedSubject, ...]:
    """The subjects of a CSI driver: on the nodes, its operator's and its controller's."""
    account = f"system:serviceaccount:openshift-cluster-csi-drivers:{driver}"
    return (
        FederatedSubject("node", f"{account}-node-sa"),
        FederatedSubject("operator", f"{account}-operator"),
        FederatedSubject("controller", f"{account}-controller-sa"),
    )


def csi_driver_config(secret: str) -> ConfigFile:
    """openshift/csi-operator assets/overlays/azure-{disk,file}/generated/hypershift/controller.yaml."""
    return ConfigFile(
        kind=CloudConfigKind.CSI_DRIVER,
        secret=secret,
        volume="cloud-config",
        directory="/etc/kubernetes",
        file="cloud.conf",
        env="AZURE_CREDENTIAL_FILE",
    )


def managed_group_list(type: str, api_version: str) -> ProofCall:
    """List the resources of a type in the hosted cluster's managed resource group."""
    path = f"/subscriptions/{{subscription}}/resourceGroups/{{managed}}/providers/{type}"
    return ProofCall(path=path, api_version=api_version, action=f"{type}/read")
