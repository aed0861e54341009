"""A pod that is given an identity: what is added for each mount, and that nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.wiring import WiringConflict, wire
from identity.catalogue import CONTROL_PLANE, Mount
from tests.unit.components.world import row

Pod = dict[str, Any]

Config = tuple[str, str, dict[str, Any]]
Variable = tuple[str, str]

CLOUD_CONFIG = ("cloud-config", "/etc/cloud", {"secretName": "azure-cloud-config"})
DISK_CONFIG = ("cloud-config", "/etc/kubernetes", {"secretName": "azure-disk-csi-config"})
FILE_CONFIG = ("cloud-config", "/etc/kubernetes", {"secretName": "azure-file-csi-config"})
KMS_FILE = {"secretName": "azure-kms-config", "items": [{"key": "cloud.conf", "path": "azure.json"}]}
KMS_CONFIG = ("azure-kms-credentials", "/etc/kubernetes", KMS_FILE)
CREDENTIAL_FILE = ("AZURE_CREDENTIAL_FILE", "/etc/kubernetes/cloud.conf")
REGISTRY_FILE = ("MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH", "/mnt/certs/x-json")
NETWORK_FILE = ("ARO_HCP_CLIENT_CREDENTIALS_PATH", "/var/run/secrets/azure/x-json")

# field, which of its mounts, volume and path of the credential; the configuration document's volume, directory and
# Secret; the environment variable
MOUNTS: list[tuple[str, int, str, str, Config | None, Variable | None]] = [
    ("cloudProvider", 0, "cloud-provider-cert", "/mnt/certs", CLOUD_CONFIG, None),
    ("nodePoolManagement", 0, "nodepool-management-cert", "/mnt/certs", None, None),
    ("controlPlaneOperator", 0, "cpo-cert", "/mnt/certs", None, None),
    ("imageRegistry", 0, "image-registry-cert", "/mnt/certs", None, REGISTRY_FILE),
    ("ingress", 0, "ingress-cert", "/mnt/certs", None, REGISTRY_FILE),
    ("network", 0, "cncc-cert", "/var/run/secrets/azure", None, NETWORK_FILE),
    ("disk", 0, "azure-disk", "/mnt/certs", DISK_CONFIG, CREDENTIAL_FILE),
    ("file", 0, "azure-file", "/mnt/certs", FILE_CONFIG, CREDENTIAL_FILE),
    ("kms", 0, "kms-cert", "/mnt/certs", KMS_CONFIG, None),
    ("kms", 1, "kms-cert", "/mnt/kms", None, None),
]


def wired(pod: Pod, mount: Mount, container: str = "main", secret_provider_class: str = "a-class") -> Pod:
    return wire(pod, mount, container=container, secret_provider_class=secret_provider_class, secret_name="x-json")


def pod(**container: Any) -> Pod:
    return {"containers": [{"name": "main", "image": "main:1", **container}]}


def credential_volume(name: str, secret_provider_class: str = "a-class") -> dict[str, Any]:
    return {
        "name": name,
        "csi": {
            "driver": "secrets-store.csi.k8s.io",
            "readOnly": True,
            "volumeAttributes": {"secretProviderClass": secret_provider_class},
        },
    }


@pytest.mark.parametrize(
    ("field", "index", "volume", "path", "config", "variable"),
    MOUNTS,
    ids=[f"{field}-{index}" for field, index, *_ in MOUNTS],
)
def test_a_mount_adds_its_volumes_its_mounts_and_its_variable(
    field: str, index: int, volume: str, path: str, config: Config | None, variable: Variable | None
) -> None:
    got = wired(pod(), row(field).mounts[index])

    volumes = [credential_volume(volume)]
    mounts = [{"name": volume, "mountPath": path, "readOnly": True}]
    if config is not None:
        volumes.append({"name": config[0], "secret": config[2]})
        mounts.append({"name": config[0], "mountPath": config[1], "readOnly": True})
    container: dict[str, Any] = {"name": "main", "image": "main:1", "volumeMounts": mounts}
    if variable is not None:
        container["env"] = [{"name": variable[0], "value": variable[1]}]
    assert got == {"containers": [container], "volumes": volumes}


def test_the_table_above_has_every_mount() -> None:
    assert len(MOUNTS) == sum(len(each.mounts) for each in CONTROL_PLANE)


def test_one_pod_can_have_two_identities() -> None:
    """The control-plane operator has its own and that of KMS."""
    own, kms = row("controlPlaneOperator").mounts[0], row("kms").mounts[1]

    got = wired(wired(pod(), own, secret_provider_class="managed-azure-cpo"), kms)

    assert got["volumes"] == [credential_volume("cpo-cert", "managed-azure-cpo"), credential_volume("kms-cert")]
    assert [each["mountPath"] for each in got["containers"][0]["volumeMounts"]] == ["/mnt/certs", "/mnt/kms"]


def test_other_containers_get_nothing() -> None:
    sidecar = {"name": "sidecar", "image": "sidecar:1"}

    got = wired({"containers": [sidecar, *pod()["containers"]]}, row("ingress").mounts[0])

    assert got["containers"][0] == sidecar


def test_a_pod_without_the_container_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no container 'other' in the pod: it has 'main'"):
        wired(pod(), row("ingress").mounts[0], container="other")


@pytest.mark.parametrize(
    "taken",
    [
        {**pod(), "volumes": [{"name": "ingress-cert", "emptyDir": {}}]},
        pod(volumeMounts=[{"name": "other", "mountPath": "/mnt/certs"}]),
        pod(env=[{"name": "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH", "value": "/elsewhere"}]),
    ],
    ids=["volume", "path", "variable"],
)
def test_what_has_another_meaning_already_is_not_overwritten(taken: Pod) -> None:
    with pytest.raises(WiringConflict, match="the identity needs"):
        wired(taken, row("ingress").mounts[0])


# No name that a mount needs starts with an `x`.
_names = st.from_regex(r"x[a-z0-9]{0,5}", fullmatch=True)
_values = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.lists(st.text(max_size=3), max_size=2))


def _entries(key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Entries of a list, which are told apart by `key`."""
    others = st.dictionaries(_names, _values, max_size=3)
    return others.map(lambda values: [{key: name, "other": value} for name, value in values.items()])


_containers: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": _names},
    optional={
        "image": _values,
        "env": _entries("name"),
        "volumeMounts": _entries("mountPath"),
        "securityContext": st.dictionaries(_names, _values, max_size=2),
    },
)
_pods: st.SearchStrategy[Pod] = st.fixed_dictionaries(
    {"containers": st.lists(_containers, min_size=1, max_size=3, unique_by=lambda each: each["name"])},
    optional={
        "volumes": _entries("name"),
        "initContainers": st.lists(_containers, max_size=1),
        "serviceAccountName": _names,
    },
)
_mounts = st.sampled_from([mount for each in CONTROL_PLANE for mount in each.mounts])


@given(pod=_pods, mount=_mounts, data=st.data())
def test_wiring_twice_is_wiring_once(pod: Pod, mount: Mount, data: st.DataObject) -> None:
    container = data.draw(st.sampled_from([each["name"] for each in pod["containers"]]))
    once = wired(pod, mount, container)

    assert wired(once, mount, container) == once


@given(pod=_pods, mount=_mounts, data=st.data())
def test_nothing_is_taken_away_moved_or_changed(pod: Pod, mount: Mount, data: st.DataObject) -> None:
    container = data.draw(st.sampled_from([each["name"] for each in pod["containers"]]))
    before = copy.deepcopy(pod)

    got = wired(pod, mount, container)

    assert pod == before, "the pod that was given is not touched"
    for each in got["containers"]:
        if each["name"] == container:
            _drop_additions(each, "env", "name")
            _drop_additions(each, "volumeMounts", "mountPath")
    _drop_additions(got, "volumes", "name")
    assert _without_empty_lists(got) == _without_empty_lists(before)


def _drop_additions(owner: dict[str, Any], field: str, key: str) -> None:
    owner[field] = [entry for entry in owner.get(field, []) if entry[key].startswith("x")]


def _without_empty_lists(value: Any) -> Any:
    """A list that is absent and one that is empty are the same to Kubernetes."""
    if isinstance(value, dict):
        return {key: _without_empty_lists(each) for key, each in value.items() if each != []}
    if isinstance(value, list):
        return [_without_empty_lists(each) for each in value]
    return value
