"""The HostedCluster that the stack applies: the user's part and the stack's as one object, after every secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given as for_all
from hypothesis import strategies as st

from components.hypershift.hosted_cluster_object import conflicts, merged
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, IDENTITIES, hosted_cluster

HOSTED_CLUSTER = "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster"
BASE: dict[str, Any] = {
    "metadata": {"annotations": {"hypershift.openshift.io/pod-security-admission-label-override": "baseline"}},
    "spec": {
        "release": {"image": "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64"},
        "pullSecret": {"name": "hc1-pull-secret"},
        "serviceAccountSigningKey": {"name": "hc1-key"},
        "pausedUntil": "2027-01-01T00:00:00Z",
        "platform": {"type": "Azure", "azure": {"location": "eastus", "topology": "Public"}},
    },
}


RELEASE = "quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64"
WRITTEN = {"releaseImage": RELEASE, "pullSecret": "hc1-pull-secret", "serviceAccountSigningKey": "hc1-key"}
DNS = {
    "baseDomain": "apps.example.com",
    "publicZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/apps.example.com",
    "privateZoneID": f"{GROUPS}/hc1-managed/providers/Microsoft.Network/privateDnsZones/hc1.apps.example.com",
}


def applied(program: Program, given: dict[str, Any]) -> RecordingMonitor:
    """The stack with a HostedCluster; only a written one needs its domains."""
    domains = {"dns": DNS, "externalDnsDomain": "control-planes.example.com"} if "releaseImage" in given else {}
    return program(clusterSide="hypershift", hostedClusters=[hosted_cluster(hostedCluster=given, **domains)])


@pytest.fixture(scope="module")
def with_object(program: Program) -> RecordingMonitor:
    return applied(program, {"manifest": BASE})


def test_the_users_part_and_the_stacks_are_one_object(stack: RecordingMonitor, with_object: RecordingMonitor) -> None:
    got = with_object.one(HOSTED_CLUSTER, "hc1-hosted-cluster-object").inputs
    spec = stack.outputs_of("hc1")["spec"]

    assert {key: got[key] for key in ("apiVersion", "kind", "metadata")} == {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": "hc1", "namespace": "clusters", **BASE["metadata"]},
    }
    assert got["spec"] == {
        **BASE["spec"],
        **spec,
        "platform": {"type": "Azure", "azure": {**spec["platform"]["azure"], "topology": "Public"}},
    }
    # Without a release it gets no defaults: some fields cannot be changed on a cluster that exists.
    assert {"controllerAvailabilityPolicy", "etcd", "networking", "services"} & got["spec"].keys() == set()


def test_it_comes_after_every_secret_every_role_and_every_identity(with_object: RecordingMonitor) -> None:
    last = with_object.one(HOSTED_CLUSTER)
    first = [
        resource
        for kind in (
            "idstack:index:CredentialSecret",
            "azure-native:authorization:RoleAssignment",
            "azure-native:managedidentity:UserAssignedIdentity",
            "azure-native:managedidentity:FederatedIdentityCredential",
        )
        for resource in with_object.all(kind)
    ]

    assert len(with_object.all("idstack:index:CredentialSecret")) == len(IDENTITIES)
    assert [resource.name for resource in first if not with_object.waits_for(last, resource)] == []


def test_it_is_protected_and_may_take_an_hour_to_go(with_object: RecordingMonitor) -> None:
    registered = with_object.one(HOSTED_CLUSTER)

    assert (registered.request.protect, registered.request.customTimeouts.delete) == (True, "60m")
    assert registered.secrets == frozenset()
    objects = [resource for resource in with_object.registered if resource.type.startswith("kubernetes:")]
    assert [(obj.type, obj.provider) for obj in objects] == [(HOSTED_CLUSTER, "kubernetes")], "and it is the only one"


def test_a_file_is_as_good_as_a_mapping(program: Program, with_object: RecordingMonitor, tmp_path: Path) -> None:
    """`hypershift create cluster azure --render` prints a status and an empty date as well."""
    rendered = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": "hc1", "namespace": "clusters", "creationTimestamp": None, **BASE["metadata"]},
        "spec": BASE["spec"],
        "status": {},
    }
    text = yaml.safe_dump(rendered).replace("'2027-01-01T00:00:00Z'", "2027-01-01T00:00:00Z")
    (tmp_path / "hc1.yaml").write_text(f"---\n{text}---\n", encoding="utf-8")

    recorder = applied(program, {"file": str(tmp_path / "hc1.yaml")})

    assert recorder.one(HOSTED_CLUSTER).inputs == with_object.one(HOSTED_CLUSTER).inputs


def test_the_stack_writes_the_whole_object(program: Program, with_object: RecordingMonitor) -> None:
    """`tests/unit/hypershift_cli` compares it with the CLI's."""
    written = applied(program, WRITTEN)
    spec = written.one(HOSTED_CLUSTER).inputs["spec"]
    assert written.all(ENCRYPTION_KEY) == [], "KMS encrypts etcd"

    identity = with_object.one(HOSTED_CLUSTER).inputs["spec"]
    assert {field: spec[field] for field in ("infraID", "issuerURL", "secretEncryption")} == {
        field: identity[field] for field in ("infraID", "issuerURL", "secretEncryption")
    }
    assert (spec["release"], spec["pullSecret"], spec["serviceAccountSigningKey"], spec["dns"]) == (
        {"image": RELEASE},
        {"name": "hc1-pull-secret"},
        {"name": "hc1-key"},
        DNS,
    )
    assert [service["servicePublishingStrategy"]["route"]["hostname"] for service in spec["services"]] == [
        f"{word}-hc1.control-planes.example.com" for word in ("api", "ignition", "konnectivity", "oauth")
    ]
    assert (spec["networking"]["networkType"], spec["etcd"]["managementType"]) == ("OVNKubernetes", "Managed")


def test_a_field_that_the_user_gives_replaces_the_stacks_default(program: Program) -> None:
    manifest: dict[str, Any] = {
        "metadata": {"annotations": {"owner": "me"}, "labels": {"team": "a"}},
        "spec": {
            "controllerAvailabilityPolicy": "HighlyAvailable",
            "etcd": {"managementType": "Unmanaged", "unmanaged": {"endpoint": "https://etcd.example.com"}},
            "dns": {"baseDomainPrefix": "hc-1"},
        },
    }

    got = applied(program, {**WRITTEN, "manifest": manifest}).one(HOSTED_CLUSTER).inputs

    assert got["metadata"]["annotations"] == {
        "hypershift.openshift.io/pod-security-admission-label-override": "baseline",
        "owner": "me",
    }
    assert got["metadata"]["labels"] == {"team": "a"}
    assert got["spec"]["controllerAvailabilityPolicy"] == "HighlyAvailable"
    assert got["spec"]["etcd"] == manifest["spec"]["etcd"]
    assert got["spec"]["dns"] == {**DNS, "baseDomainPrefix": "hc-1"}
    assert got["spec"]["olmCatalogPlacement"] == "management"


# Few names and values, so that the two parts meet.
_parts = st.recursive(
    st.sampled_from(["x", 1, True, ["y"]]),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_documents = st.dictionaries(st.sampled_from("abc"), _parts, max_size=3)


def _leaves(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(document, dict) and document:
        for key, value in document.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, document


@for_all(one=_documents, other=_documents)
def test_two_parts_conflict_or_have_everything_of_both(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = list(conflicts(one, other))
    turned = {conflict.path: (conflict.user_value, conflict.stack_value) for conflict in conflicts(other, one)}

    assert {conflict.path: (conflict.stack_value, conflict.user_value) for conflict in found} == turned
    if not found:
        whole = dict(_leaves(merged(one, other)))
        assert merged(one, other) == merged(other, one)
        assert all(whole[path] == value for part in (one, other) for path, value in _leaves(part) if value != {})


ENCRYPTED = {"type": "aescbc", "aescbc": {"activeKey": {"name": "hc1-etcd-encryption-key"}}}
OWN_KEY = {"type": "aescbc", "aescbc": {"activeKey": {"name": "mine"}}}
ENCRYPTION_KEY, ENCRYPTION_SECRET = (f"idstack:index:EncryptionKey{end}" for end in ("", "Secret"))


def without_kms(program: Program, **given: Any) -> RecordingMonitor:
    cluster = hosted_cluster(hostedCluster={**WRITTEN, **given}, dns=DNS, externalDnsDomain="planes.example.com")
    return program(clusterSide="hypershift", hostedClusters=[{**cluster, "kms": None}])


def test_etcd_is_encrypted_with_a_key_that_the_stack_makes(program: Program) -> None:
    made = without_kms(program)
    obj, key, secret = (made.one(token) for token in (HOSTED_CLUSTER, ENCRYPTION_KEY, ENCRYPTION_SECRET))

    assert obj.inputs["spec"]["secretEncryption"] == ENCRYPTED
    assert key.inputs["secretName"] == "hc1-etcd-encryption-key"
    named = {"namespace": "clusters", "name": "hc1-etcd-encryption-key", "secretName": "hc1-etcd-encryption-key"}
    assert named.items() <= secret.inputs.items()
    assert made.waits_for(obj, secret)
    assert made.waits_for(secret, key)
    outputs = made.stack_outputs.values["hostedClusters"]["hc1"]
    assert outputs["encryptionKeySecret"] == "hc1-etcd-encryption-key"


@pytest.mark.parametrize(
    ("given", "encryption"),
    [({"etcdEncryption": "none"}, None), ({"manifest": {"spec": {"secretEncryption": OWN_KEY}}}, OWN_KEY)],
    ids=["none", "the user's own key"],
)
def test_without_a_key_of_the_stacks_none_is_made(program: Program, given: dict[str, Any], encryption: Any) -> None:
    made = without_kms(program, **given)

    assert made.one(HOSTED_CLUSTER).inputs["spec"].get("secretEncryption") == encryption
    assert [made.all(token) for token in (ENCRYPTION_KEY, ENCRYPTION_SECRET)] == [[], []]
    assert "encryptionKeySecret" not in made.stack_outputs.values["hostedClusters"]["hc1"]
