"""A pod that is given an identity: what is added for each mount, and that nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.kubernetes.wiring import WiringConflictError, wire
from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import Mount
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
Wiring = tuple[str, int, str, str, Config | None, Variable | None]
CONFIGURED: list[Wiring] = [
    ("cloudProvider", 0, "cloud-provider-cert", "/mnt/certs", CLOUD_CONFIG, None),
    ("imageRegistry", 0, "image-registry-cert", "/mnt/certs", None, REGISTRY_FILE),
    ("ingress", 0, "ingress-cert", "/mnt/certs", None, REGISTRY_FILE),
    ("network", 0, "cncc-cert", "/var/run/secrets/azure", None, NETWORK_FILE),
    ("disk", 0, "azure-disk", "/mnt/certs", DISK_CONFIG, CREDENTIAL_FILE),
    ("file", 0, "azure-file", "/mnt/certs", FILE_CONFIG, CREDENTIAL_FILE),
    ("kms", 0, "kms-cert", "/mnt/certs", KMS_CONFIG, None),
]
# All others get the credential's volume and nothing else.
PLAIN: list[Wiring] = [
    (identity.field, index, mount.volume, mount.path, None, None)
    for identity in CONTROL_PLANE
    for index, mount in enumerate(identity.mounts)
    if mount.config is None and mount.credential_env is None
]
MOUNTS = [*CONFIGURED, *PLAIN]


def wired(workload: Pod, mount: Mount, *containers: str, secret_provider_class: str = "a-class") -> Pod:
    containers = containers or ("main",)
    return wire(workload, mount, *containers, secret_provider_class=secret_provider_class, secret_name="x-json")


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


def test_the_tables_above_have_every_mount() -> None:
    assert len(MOUNTS) == sum(len(identity.mounts) for identity in CONTROL_PLANE)


def test_one_pod_can_have_two_identities() -> None:
    """The control-plane operator has its own and that of KMS."""
    own, kms = row("controlPlaneOperator").mounts[0], row("kms").mounts[1]

    got = wired(wired(pod(), own, secret_provider_class="managed-azure-cpo"), kms)

    assert got["volumes"] == [credential_volume("cpo-cert", "managed-azure-cpo"), credential_volume("kms-cert")]
    assert [volume_mount["mountPath"] for volume_mount in got["containers"][0]["volumeMounts"]] == [
        "/mnt/certs",
        "/mnt/kms",
    ]


def test_several_containers_share_one_volume_and_others_get_nothing() -> None:
    """While a key that only reads exists, kube-apiserver runs two of its KMS plugins."""
    names = ("azure-kms-provider-active", "azure-kms-provider-backup")
    before = {
        "containers": [{"name": name} for name in ("kube-apiserver", names[0])],
        "initContainers": [{"name": names[1]}],
    }

    got = wired(before, row("kms").mounts[0], *names)

    assert [volume["name"] for volume in got["volumes"]] == ["kms-cert", "azure-kms-credentials"]
    counts = [len(container.get("volumeMounts", [])) for container in (*got["containers"], *got["initContainers"])]
    assert counts == [0, 2, 2]


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"])
def test_every_kind_with_pods_is_wired_in_its_template(kind: str) -> None:
    def an_object(spec: Pod) -> dict[str, Any]:
        template = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}, "other": 1}
        specs = {"Pod": spec, "CronJob": {"jobTemplate": {"spec": template}}}
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": specs.get(kind, template)}

    mount = row("ingress").mounts[0]

    assert wired(an_object(pod()), mount) == an_object(wired(pod(), mount))


@pytest.mark.parametrize(
    ("workload", "containers", "problem"),
    [
        ({"kind": "Service", "spec": {}}, ("main",), "a Service has no pod specification; these kinds have one: Pod,"),
        (pod(), ("main", "other"), "no container 'other' in the pod: it has 'main'"),
        (pod(), (), "no container named in the pod: it has 'main'"),
    ],
)
def test_what_cannot_be_wired_is_refused_by_name(workload: Pod, containers: tuple[str, ...], problem: str) -> None:
    mount = row("ingress").mounts[0]
    with pytest.raises(ValueError, match=problem):
        wire(workload, mount, *containers, secret_provider_class="a-class", secret_name="x-json")


TAKEN = {
    "volumes of the pod already has 'ingress-cert'": {**pod(), "volumes": [{"name": "ingress-cert", "emptyDir": {}}]},
    "volumeMounts of container 'main' already has '/mnt/certs'": pod(
        volumeMounts=[{"name": "other", "mountPath": "/mnt/certs/"}]
    ),
    "env of container 'main' already has 'MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH'": pod(
        env=[{"name": "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH", "value": "/elsewhere"}]
    ),
}


@pytest.mark.parametrize("message", TAKEN)
def test_what_has_another_meaning_already_is_not_overwritten(message: str) -> None:
    with pytest.raises(WiringConflictError, match=f"{message}: .*; the identity needs "):
        wired(TAKEN[message], row("ingress").mounts[0])


# No name that a mount needs starts with an `x`.
_names = st.from_regex(r"x[a-z0-9]{0,5}", fullmatch=True)
_values = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.lists(st.text(max_size=3), max_size=2))


def _entries(key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Entries of a list, which `key` identifies."""
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


def _divided(containers: list[dict[str, Any]], init: int) -> Pod:
    return (
        {"initContainers": containers[:init], "containers": containers[init:]} if init else {"containers": containers}
    )


_pods: st.SearchStrategy[Pod] = st.builds(
    lambda divided, others: {**others, **divided},
    st.builds(
        _divided,
        st.lists(_containers, min_size=2, max_size=4, unique_by=lambda container: container["name"]),
        st.integers(min_value=0, max_value=1),
    ),
    st.fixed_dictionaries({}, optional={"volumes": _entries("name"), "serviceAccountName": _names}),
)
_mounts = st.sampled_from([mount for identity in CONTROL_PLANE for mount in identity.mounts])


def _every_container(spec: Pod) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def _some_containers(data: st.DataObject, spec: Pod) -> set[str]:
    return data.draw(st.sets(st.sampled_from([container["name"] for container in _every_container(spec)]), min_size=1))


@given(spec=_pods, mount=_mounts, data=st.data())
def test_wiring_twice_is_wiring_once(spec: Pod, mount: Mount, data: st.DataObject) -> None:
    containers = _some_containers(data, spec)
    once = wired(spec, mount, *containers)

    assert wired(once, mount, *containers) == once


@given(spec=_pods, mount=_mounts, data=st.data())
def test_nothing_is_taken_away_moved_or_changed(spec: Pod, mount: Mount, data: st.DataObject) -> None:
    containers = _some_containers(data, spec)
    before = copy.deepcopy(spec)

    got = wired(spec, mount, *containers)

    assert spec == before, "the pod that was given is not touched"
    for container in _every_container(got):
        if container["name"] in containers:
            _drop_additions(container, "env", "name")
            _drop_additions(container, "volumeMounts", "mountPath")
    _drop_additions(got, "volumes", "name")
    assert _without_empty_lists(got) == _without_empty_lists(before)


def _drop_additions(owner: dict[str, Any], field: str, key: str) -> None:
    owner[field] = [entry for entry in owner.get(field, []) if entry[key].startswith("x")]


def _without_empty_lists(value: Any) -> Any:
    """A list that is absent and one that is empty are the same to Kubernetes."""
    if isinstance(value, dict):
        return {key: _without_empty_lists(part) for key, part in value.items() if part != []}
    if isinstance(value, list):
        return [_without_empty_lists(part) for part in value]
    return value
