"""A pod's volumes of Secrets, ConfigMaps and scratch space, as its containers find them."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from localcloud.kubelet.client import CONFIG_MAPS, PODS, SECRETS
from localcloud.testing.kubernetes import config_map, secret
from tests.kubelet_world import NAMESPACE, ClusterApi, Kubelet, Object, pod, states


def files(directory: Path) -> dict[str, tuple[str, int]]:
    """Content and mode of each file that a container sees, by path."""
    found = [path for top in directory.iterdir() if top.name[0] != "." for path in (top, *top.rglob("*"))]
    return {
        path.relative_to(directory).as_posix(): (path.read_text(), stat.S_IMODE(path.stat().st_mode))
        for path in found
        if path.is_file()
    }


def mounted(cluster: ClusterApi, kubelet: Kubelet, source: Object) -> dict[str, tuple[str, int]]:
    """What a pod finds in a volume of this source."""
    cluster.run(pod("web", {"name": "v", **source}))
    return files(kubelet.tree("web") / "mnt/v")


SECRET = secret("azure-cloud-config", cloud="{}", other="x")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({}, {"cloud": ("{}", 0o644), "other": ("x", 0o644)}),
        ({"defaultMode": 0o400}, {"cloud": ("{}", 0o400), "other": ("x", 0o400)}),
        ({"items": [{"key": "cloud", "path": "azure/cloud.conf"}]}, {"azure/cloud.conf": ("{}", 0o644)}),
        ({"items": [{"key": "cloud", "path": "c", "mode": 0o600}], "defaultMode": 0o400}, {"c": ("{}", 0o600)}),
        ({"items": [{"key": "none", "path": "c"}], "optional": True}, {}),
    ],
)
def test_a_secret_becomes_files(
    cluster: ClusterApi, kubelet: Kubelet, source: Object, found: dict[str, tuple[str, int]]
) -> None:
    cluster.create(SECRETS, SECRET)

    assert mounted(cluster, kubelet, {"secret": {"secretName": "azure-cloud-config", **source}}) == found


def test_a_config_map_becomes_files_of_text_and_bytes(cluster: ClusterApi, kubelet: Kubelet) -> None:
    binary = {"binaryData": {"b": base64.b64encode(b"bytes").decode()}}
    cluster.create(CONFIG_MAPS, {**config_map("settings", {"a": "é"}), **binary})

    found = mounted(cluster, kubelet, {"configMap": {"name": "settings"}})

    assert found == {"a": ("é", 0o644), "b": ("bytes", 0o644)}


def test_a_projected_volume_puts_sources_together(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(SECRETS, SECRET)
    cluster.create(CONFIG_MAPS, config_map("settings", {"a": "1"}))
    sources = [
        {"secret": {"name": "azure-cloud-config", "items": [{"key": "cloud", "path": "azure.json"}]}},
        {"configMap": {"name": "settings"}},
    ]

    found = mounted(cluster, kubelet, {"projected": {"sources": sources, "defaultMode": 0o440}})

    assert found == {"azure.json": ("{}", 0o440), "a": ("1", 0o440)}


def test_a_pods_own_fields_become_files(cluster: ClusterApi, kubelet: Kubelet) -> None:
    fields = {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.namespace"}, "mode": 0o600}]}
    projected = {"sources": [{"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}
    volumes = [{"name": "a", "downwardAPI": fields}, {"name": "b", "projected": projected}]

    cluster.run(pod("web", *volumes))

    assert files(kubelet.tree("web") / "mnt/a") == {"n": (NAMESPACE, 0o600)}
    assert files(kubelet.tree("web") / "mnt/b") == {"p": ("web", 0o644)}


@pytest.mark.parametrize("source", [{"secret": {"secretName": "none"}}, {"configMap": {"name": "none"}}])
def test_an_optional_source_that_is_not_there_is_an_empty_directory(
    cluster: ClusterApi, kubelet: Kubelet, source: dict[str, Object]
) -> None:
    optional = {kind: {**fields, "optional": True} for kind, fields in source.items()}

    assert mounted(cluster, kubelet, optional) == {}


def test_a_pod_waits_for_its_secret_and_follows_its_changes(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", {"name": "v", "secret": {"secretName": "pull"}}))
    cluster.event("web", "FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "pull" not found')

    cluster.create(SECRETS, secret("pull", key="first"))
    cluster.ready("web")
    cluster.merge(SECRETS, "pull", {"stringData": {"key": "second"}})
    cluster.event("web", "MountRotationComplete", "volume v")

    assert files(kubelet.tree("web") / "mnt/v") == {"key": ("second", 0o644)}
    assert (kubelet.tree("web") / "mnt/v/key").readlink() == Path("..data/key")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        (
            {"secret": {"secretName": "azure-cloud-config", "items": [{"key": "none", "path": "p"}]}},
            "references non-existent secret key: none of azure-cloud-config",
        ),
        (
            {"configMap": {"name": "settings", "items": [{"key": "none", "path": "p"}]}},
            "references non-existent config key: none of settings",
        ),
        (
            {"secret": {"secretName": "azure-cloud-config", "items": [{"key": "cloud", "path": "../p"}]}},
            "invalid path: must not contain '..': ../p",
        ),
        (
            {"hostPath": {"path": "/etc"}},
            "the local kubelet has no hostPath volumes; it has csi, secret, configMap, projected, downwardAPI "
            "and emptyDir",
        ),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {"path": "ca.crt"}}]}},
            "the local kubelet projects secrets, configMaps, ServiceAccount tokens and the pod's fields, not "
            "clusterTrustBundle",
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels['none']"}}]}},
            "field reference metadata.labels['none']: the pod has no such string field",
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
            "p: the local kubelet limits no resources, so it has fieldRef alone",
        ),
        # The built-in API issues none.
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            "failed to fetch token: ",
        ),
    ],
)
def test_a_volume_that_can_not_be_had_holds_the_pod_up(
    cluster: ClusterApi, kubelet: Kubelet, source: Object, message: str
) -> None:
    cluster.create(SECRETS, SECRET)
    cluster.create(CONFIG_MAPS, config_map("settings", {"key": "value"}))

    cluster.create(PODS, pod("web", {"name": "v", **source}))

    cluster.event("web", "FailedMount", f'MountVolume.SetUp failed for volume "v" : {message}')


def containers(*mounts: tuple[str, Object]) -> list[Any]:
    """A container for each `(script, volumeMount)`, named after its place."""
    return [
        {"name": f"c{place}", "image": "i", "command": ["sh", "-c", script], "volumeMounts": [mount]}
        for place, (script, mount) in enumerate(mounts)
    ]


def test_scratch_space_is_shared_by_the_pods_containers(cluster: ClusterApi, kubelet: Kubelet) -> None:
    spec = {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": containers(
            ("echo hello > /a/greeting; ls /a", {"name": "v", "mountPath": "/a"}),
            ("exec sleep 600", {"name": "v", "mountPath": "/b/"}),
        ),
    }

    cluster.create(PODS, pod("web", spec=spec))
    cluster.once_pod("web", lambda web: "terminated" in states(web).get("c0", {}))

    assert kubelet.log("web", "c0") == "greeting\n"
    assert (kubelet.tree("web") / "b/greeting").read_text() == "hello\n"


def test_a_part_of_a_volume_is_mounted_alone(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(CONFIG_MAPS, config_map("settings", {"azure.json": "{}", "other": ""}))
    spec = {
        "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
        "containers": containers(
            ("ls /etc/kubernetes", {"name": "v", "mountPath": "/etc/kubernetes/azure.json", "subPath": "azure.json"})
        ),
    }

    cluster.create(PODS, pod("web", spec=spec))
    cluster.finished("web")

    assert files(kubelet.tree("web") / "etc/kubernetes") == {"azure.json": ("{}", 0o644)}


def test_two_volumes_at_one_path_are_refused(cluster: ClusterApi, kubelet: Kubelet) -> None:
    spec = {
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
        "containers": containers(
            ("true", {"name": "a", "mountPath": "/mnt/certs"}), ("true", {"name": "b", "mountPath": "/mnt/certs"})
        ),
    }

    cluster.create(PODS, pod("web", spec=spec))

    cluster.event("web", "FailedMount", 'volumes "a" and "b" are both mounted at /mnt/certs')


def test_a_pods_files_are_closed_to_others(cluster: ClusterApi, kubelet: Kubelet) -> None:
    mounted(cluster, kubelet, {"emptyDir": {}})

    assert [stat.S_IMODE(path.stat().st_mode) for path in (kubelet.tree("web"), kubelet.tree("web") / "mnt/v")] == [
        0o700,
        0o700,
    ]
