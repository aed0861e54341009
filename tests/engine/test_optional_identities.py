"""Identities that somebody switches on, and off again: they come whole, go whole, and nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from identity.catalogue import OPTIONAL
from tests.engine.changing import bring_up, refusal
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

ACCOUNT = "Microsoft.Storage/storageAccounts/backuplocal"
REGISTRY = "Microsoft.ContainerRegistry/registries/idstacklocal"
PULL = "Microsoft.ManagedIdentity/userAssignedIdentities/hc1-acr-pull-hc1-infra"


def test_optional_identities_come_and_go(small: LocalStack) -> None:
    """A Deployment is ready once its probe has signed in and listed the containers of the storage account."""
    [cluster] = small.configuration("hostedClusters")
    group = f"/subscriptions/{small.environment.subscription_id}/resourceGroups/identity-local"
    backup = {"identities": {**cluster["identities"], "etcdBackup": {"enabled": True}}}
    resources = {
        "backupStorageAccountID": f"{group}/providers/{ACCOUNT}",
        "containerRegistryID": f"{group}/providers/{REGISTRY}",
        "externalDnsZoneID": cluster["dns"]["publicZoneID"],
        "managementIssuerURL": "https://oidc.example.com/mgmt/",
    }
    with_all = {**cluster, **backup, **resources, "managedIdentities": [row.field for row in OPTIONAL]}

    with small.configured(hostedClusters=[with_all]):
        added = bring_up(small)
        mounted = Path(small.environment.mounts_dir, "clusters-hc1/probe-etcd-backup/etc/etcd-backup-creds")
        document = json.loads((mounted / "credentials").read_text(encoding="utf-8"))
        client_id = small.control_plane["etcdBackup"]["clientID"]
        described = small.outputs["hostedClusters"]["hc1"]
        status = json.loads(small.idstack("status", "--json").stdout)
        refused = refusal(small, hostedClusters=[cluster])
        with small.configured(hostedClusters=[cluster], allowCredentialLoss=["hc1"]):
            removed = bring_up(small)

    own = {
        *("hc1-etcd-backup", "hc1-etcd-backup-credential-secret", "hc1-etcd-backup-roles-backup-storage"),
        *("hc1-cluster-side-etcd-backup-class-object", "hc1-cluster-side-probe-etcd-backup-deployment"),
    }
    assert own <= added.names("create")
    assert {f"hc1-{row.name}-identity" for row in OPTIONAL} <= added.names("create")
    assert {"hc1-acr-pull-attacher-roles-identity", "hc1-velero-federated-etcd-backup-job"} <= added.names("create")
    external = {"hc1-external-dns-roles-external-zone", "hc1-external-dns-roles-2-external-zone-group"}
    assert external <= added.names("create")
    assert added.names("update", "replace", "delete") == {"hc1-cluster-side-nodes-config-map"}
    registry = described["hostedClusterSpec"]["platform"]["azure"]["containerRegistry"]["credentials"]
    assert registry["managedIdentity"] == {"resourceID": f"{group}/providers/{PULL}"}
    assert sorted(described["managedIdentities"]) == sorted(row.field for row in OPTIONAL)
    assert document["client_id"] == client_id
    assert "clientSecret" not in document, "HyperShift would take it for an application's password"
    [row] = [reported for reported in status["rows"] if reported["identity"] == "etcdBackup"]
    assert [mount["problem"] for mount in row["mounts"]] == [None]
    managed = status["managedIdentities"]
    assert {reported["identity"]: reported["state"] for reported in managed["rows"]} == {
        row.field: "exists" for row in OPTIONAL
    }
    federated = [
        federated_credential["state"] for row in managed["rows"] for federated_credential in row["federatedCredentials"]
    ]
    assert (federated, managed["unread"]) == (["exists"] * 2, [])
    for lost in ("etcdBackup: etcd-backup-hc1-json", f"acrPull: {PULL.rpartition('/')[2]}"):
        assert f"{lost} -> nothing" in refused
    assert removed.names("delete") == added.names("create")
    assert removed.names("create", "update", "replace") == {"hc1-cluster-side-nodes-config-map"}
    assert small.preview() == {}
