"""The table against the reference's literal values, and its own invariants."""

from __future__ import annotations

import uuid
from dataclasses import fields
from typing import Any

import pytest

from identity import roles
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.catalogue_rows import ControlPlaneIdentity, ProofTarget, Scope
from identity.naming import federated_credential_name
from identity.roles import Role
from tests.architecture.source import ROOT, files

# HyperShift constants.go, HO and CPO manifests: field | SecretProviderClass | secret | deployment/container |
# volume | path
_MOUNTS = """
cloudProvider        | managed-azure-cloud-provider      | cloud-provider | azure-cloud-controller-manager/cloud-controller-manager | cloud-provider-cert      | /mnt/certs
nodePoolManagement   | managed-azure-nodepool-management | nodepool-mgmt  | capi-provider/manager                                   | nodepool-management-cert | /mnt/certs
controlPlaneOperator | managed-azure-cpo                 | cpo            | control-plane-operator/control-plane-operator           | cpo-cert                 | /mnt/certs
imageRegistry        | managed-azure-image-registry      | ciro           | cluster-image-registry-operator/cluster-image-registry-operator | image-registry-cert | /mnt/certs
ingress              | managed-azure-ingress             | ingress        | ingress-operator/ingress-operator                       | ingress-cert             | /mnt/certs
network              | managed-azure-network             | cncc           | cloud-network-config-controller/controller              | cncc-cert                | /var/run/secrets/azure
disk                 | managed-azure-disk-csi            | azure-disk     | azure-disk-csi-driver-controller/csi-driver             | azure-disk               | /mnt/certs
file                 | managed-azure-file-csi            | azure-file     | azure-file-csi-driver-controller/csi-driver             | azure-file               | /mnt/certs
kms                  | managed-azure-kms                 | kms            | kube-apiserver/azure-kms-provider-active                | kms-cert                 | /mnt/certs
kms                  | managed-azure-kms                 | kms            | control-plane-operator/control-plane-operator           | kms-cert                 | /mnt/kms
etcdBackup           | managed-azure-etcd-backup         | etcd-backup    | etcd-backup/upload                                      | backup-credentials       | /etc/etcd-backup-creds
"""  # noqa: E501


def test_every_mount_of_the_mapping_is_there_and_no_other() -> None:
    expected = {tuple(column.strip() for column in line.split("|")) for line in _MOUNTS.strip().splitlines()}

    got = {
        (row.field, row.secret_provider_class, row.secret_stem, f"{at.deployment}/{at.container}", at.volume, at.path)
        for row in CONTROL_PLANE
        for at in row.mounts
    }

    assert got == expected


# HyperShift cmd/infra/azure/identities.go:180-312: field | identity | credentials | namespace:service account
_WORKLOAD_IDENTITIES = """
disk                 | disk                   | disk-fed-id-node, disk-fed-id-operator, disk-fed-id-controller     | openshift-cluster-csi-drivers:azure-disk-csi-driver-node-sa, openshift-cluster-csi-drivers:azure-disk-csi-driver-operator, openshift-cluster-csi-drivers:azure-disk-csi-driver-controller-sa
file                 | file                   | file-fed-id-node, file-fed-id-operator, file-fed-id-controller     | openshift-cluster-csi-drivers:azure-file-csi-driver-node-sa, openshift-cluster-csi-drivers:azure-file-csi-driver-operator, openshift-cluster-csi-drivers:azure-file-csi-driver-controller-sa
imageRegistry        | image-registry         | image-registry-fed-id-registry, image-registry-fed-id-operator     | openshift-image-registry:registry, openshift-image-registry:cluster-image-registry-operator
ingress              | ingress                | ingress-fed-id                                                     | openshift-ingress-operator:ingress-operator
cloudProvider        | cloud-provider         | cloud-provider-fed-id                                              | kube-system:azure-cloud-provider
nodePoolManagement   | node-pool-mgmt         | node-pool-mgmt-fed-id                                              | kube-system:capi-provider
network              | network                | network-fed-id                                                     | openshift-cloud-network-config-controller:cloud-network-config-controller
controlPlaneOperator | control-plane-operator | cpo-fed-id                                                         | kube-system:control-plane-operator
kms                  | kms                    | kms-fed-id                                                         | kube-system:kms-provider
"""  # noqa: E501


def test_workload_identities_are_those_of_create_iam() -> None:
    columns = [[column.strip() for column in line.split("|")] for line in _WORKLOAD_IDENTITIES.strip().splitlines()]
    expected = {tuple(column) for column in columns}

    assert expected == {
        (
            row.field,
            row.federated.name,
            ", ".join(
                federated_credential_name("", row.federated.credential_stem, subject.suffix)
                for subject in row.federated.subjects
            ),
            ", ".join(subject.subject.removeprefix("system:serviceaccount:") for subject in row.federated.subjects),
        )
        for row in CONTROL_PLANE
        if row.federated is not None
    }


@pytest.mark.parametrize("row", [row for row in CONTROL_PLANE if row.workload], ids=lambda row: row.field)
def test_a_workload_identity_has_the_roles_of_its_row(row: ControlPlaneIdentity) -> None:
    federated = row.federated

    assert federated is not None
    assert (federated.component, federated.hypershift, federated.builtin) == (
        row.component,
        row.hypershift,
        row.builtin,
    )


def test_workload_identities_are_the_fields_of_the_api() -> None:
    paths = {row.field: ".".join(row.workload_path) for row in CONTROL_PLANE if row.workload is not None}
    others = {field: path for field, path in paths.items() if not path.startswith("secretEncryption")}

    assert set(paths.values()) - set(others.values()) == {"secretEncryption.kms.azure.workloadIdentity"}
    assert all(path == f"platform.azure.azureAuthenticationConfig.workloadIdentities.{f}" for f, path in others.items())


def test_an_identity_says_in_one_line_how_it_signs_in_by_workload_identity() -> None:
    source = (ROOT / "identity/catalogue.py").read_text(encoding="utf-8")

    assert source.count("\n        workload=WorkloadColumns(") == sum(row.workload is not None for row in CONTROL_PLANE)
    assert all(line.endswith("),") for line in source.splitlines() if line.startswith("        workload="))


def test_no_identity_has_more_federated_credentials_than_azure_takes() -> None:
    federated = [row.federated for row in CONTROL_PLANE if row.federated is not None]

    assert all(0 < len(row.subjects) <= 20 for row in (*DATA_PLANE, *federated))


def test_what_names_an_identity_is_unique() -> None:
    for column in ("field", "component", "secret_provider_class", "secret_stem", "hosted_cluster_path"):
        values = [value for row in CONTROL_PLANE if (value := getattr(row, column)) is not None]
        assert len(set(values)) == len(values), f"two identities share a {column}"


@pytest.mark.parametrize("row", CONTROL_PLANE, ids=lambda row: row.field)
def test_the_proof_calls_place_is_within_the_roles_scopes(row: ControlPlaneIdentity) -> None:
    scopes = {
        "{subnet}": (Scope.VNET, Scope.SUBNET),
        "{vnet}": (Scope.VNET, Scope.NETWORK),
        "{backup_storage}": (Scope.BACKUP_STORAGE, Scope.BACKUP_STORAGE),
        "{key}": (Scope.KMS_VAULT, Scope.KMS_VAULT),
    }
    both = (Scope.MANAGED, Scope.MANAGED)
    group, resource = next((scope for word, scope in scopes.items() if word in row.proof.path), both)

    assert group in row.hypershift.scopes
    assert resource in row.builtin.scopes


def test_who_attaches_an_identity_to_nodes_is_always_there() -> None:
    required = {row.field for row in CONTROL_PLANE if not row.optional}

    assert {row.attached_by for row in OPTIONAL if row.attached_by} <= required
    assert sum(row.attached_by is not None for row in OPTIONAL) == 1, "a HostedCluster has one field for it"


def test_no_two_identities_of_a_cluster_share_a_name() -> None:
    for column in ("field", "component", "name"):
        values = [getattr(row, column) for row in (*DATA_PLANE, *OPTIONAL)]
        assert len(set(values)) == len(values)


def test_what_is_off_by_default_may_be_off() -> None:
    assert all(row.optional for row in CONTROL_PLANE if not row.enabled_by_default)


@pytest.mark.parametrize("row", CONTROL_PLANE, ids=lambda row: row.field)
def test_a_mount_has_one_way_to_its_consumer(row: ControlPlaneIdentity) -> None:
    for mount in row.mounts:
        ways = [mount.credential_env is not None, mount.config is not None, mount.cluster_identity]
        assert sum(ways) <= 1


@pytest.mark.parametrize("row", CONTROL_PLANE, ids=lambda row: row.field)
def test_every_placeholder_of_a_proof_call_is_filled(row: ControlPlaneIdentity) -> None:
    words: dict[str, Any] = {field.name: f"<{field.name}>" for field in fields(ProofTarget)}
    target = ProofTarget(**words)

    assert "{" not in row.proof.path_of(target)


ROLES = {name: role for name, role in vars(roles).items() if isinstance(role, Role)}


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
def test_a_role_id_is_a_guid_with_one_home(role: Role) -> None:
    uuid.UUID(role.guid)
    rooms = ("components", "identity", "ops", "plugin", "provider", "tools")
    homes = [path for room in rooms for path in files(room) if role.guid in path.read_text("utf-8")]

    assert [str(path.relative_to(ROOT)) for path in homes] == ["identity/roles.py"]
