"""A pod's volumes of Secrets, ConfigMaps and scratch space, as its containers find them."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcloud.kubelet.atomic_writer import File, InvalidPayloadError, Payload, write
from localcloud.kubelet.client import CONFIG_MAPS, PODS, SECRETS
from localcloud.testing.kubernetes import config_map, secret
from tests.kubelet_world import NAMESPACE, ClusterApi, Kubelet, Object, pod, states

# A volume's files change all at once, behind the `..data` link, and only when they have to.

MODES = (0o400, 0o440, 0o600, 0o644, 0o755)

# A first letter says which names are directories, so that no path is both.
_directories = st.text("abc", max_size=3).map(lambda text: f"d{text}")
_leaves = st.text("ab.- é", max_size=8).map(lambda text: f"f{text}")
_paths = st.tuples(st.lists(_directories, max_size=2), _leaves).map(lambda parts: "/".join((*parts[0], parts[1])))
_files = st.builds(File, st.binary(max_size=64), st.sampled_from(MODES))
payloads = st.dictionaries(_paths, _files, max_size=5)


def seen(directory: Path) -> dict[str, tuple[bytes, int]]:
    """What a container finds, by path: every file that is reached without going through a hidden name."""
    found: dict[str, tuple[bytes, int]] = {}
    for top in directory.iterdir():
        if not top.name.startswith(".."):
            assert top.exists(), f"{top.name} leads nowhere"
            files = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
            found |= {
                file.relative_to(directory).as_posix(): (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
                for file in files
            }
    return found


def as_seen(payload: Payload) -> dict[str, tuple[bytes, int]]:
    return {path: (file.data, file.mode) for path, file in payload.items()}


@settings(max_examples=50)
@given(st.lists(payloads, min_size=1, max_size=4))
def test_the_directory_shows_the_newest_payload_and_nothing_else(versions: list[Payload]) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        before: Payload | None = None
        for payload in versions:
            assert write(directory, payload) == (payload != before)
            assert seen(directory) == as_seen(payload)
            hidden = sorted(entry.name for entry in directory.iterdir() if entry.name.startswith(".."))
            assert len(hidden) == 2, "the link and the one directory it leads to"
            before = payload


def test_files_are_links_through_the_data_link_to_a_timestamped_directory(tmp_path: Path) -> None:
    write(tmp_path, {"credential.json": File(b"{}"), "tls/key": File(b"k", 0o400)})

    assert (tmp_path / "credential.json").readlink() == Path("..data/credential.json")
    assert (tmp_path / "tls").readlink() == Path("..data/tls")
    inner = (tmp_path / "..data").readlink()
    assert len(inner.parts) == 1
    assert (tmp_path / inner).is_dir()
    assert stat.S_IMODE((tmp_path / inner).stat().st_mode) == 0o755
    # ..2006_01_02_15_04_05.<random>
    stamp, _, random = inner.name.removeprefix("..").partition(".")
    assert [len(part) for part in stamp.split("_")] == [4, 2, 2, 2, 2, 2]
    assert random


def test_the_same_payload_again_swaps_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    inner = (tmp_path / "..data").readlink()

    assert not write(tmp_path, {"a": File(b"1")})
    assert (tmp_path / "..data").readlink() == inner

    assert write(tmp_path, {"a": File(b"1", 0o600)}), "a mode is content, too"
    assert (tmp_path / "..data").readlink() != inner


def test_a_swap_keeps_the_links_and_gives_new_inodes(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    link, inode = (tmp_path / "a").lstat().st_ino, (tmp_path / "a").stat().st_ino

    write(tmp_path, {"a": File(b"2")})

    assert (tmp_path / "a").lstat().st_ino == link
    assert (tmp_path / "a").stat().st_ino != inode, "a watch on the file itself would see a deletion"


def test_what_was_changed_behind_the_writers_back_is_put_right(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    (tmp_path / "..data" / "a").write_bytes(b"tampered")

    assert write(tmp_path, {"a": File(b"1")})
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_failed_write_leaves_the_old_files(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})

    with pytest.raises(OSError, match="b"):
        write(tmp_path, {"a": File(b"2"), "b": File(b""), "b/c": File(b"")})

    assert seen(tmp_path) == {"a": (b"1", 0o644)}
    assert len(list(tmp_path.iterdir())) == 3, "the link, its directory and the file"


def test_a_link_that_a_killed_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "..data_tmp").symlink_to("..nowhere")

    write(tmp_path, {"a": File(b"1")})

    assert seen(tmp_path) == {"a": (b"1", 0o644)}
    assert not (tmp_path / "..data_tmp").is_symlink()


def test_a_path_is_what_it_means_not_how_it_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, {"./a//b": File(b"1")})
    assert not write(tmp_path, {"./a//b": File(b"1")})
    assert not write(tmp_path, {"a/b": File(b"1")})
    assert seen(tmp_path) == {"a/b": (b"1", 0o644)}


def test_a_path_that_is_the_volume_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path, {".": File(b"1")})

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "must not be empty"),
        ("/etc/passwd", "must be relative path: /etc/passwd"),
        ("a/../../b", "must not contain '..': a/../../b"),
        ("..data", "must not start with '..': ..data"),
        ("..", "must not contain '..': .."),
        ("n" * 256, "filenames must be less than or equal to 255 characters"),
        ("d/" * 2048 + "f", "must be less than or equal to 4096 characters"),
    ],
)
def test_a_path_that_leads_out_or_hides_is_refused_and_nothing_is_written(
    tmp_path: Path, path: str, problem: str
) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        write(tmp_path, {"good": File(b""), path: File(b"")})

    assert str(refused.value).startswith("invalid path: ")
    assert problem in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_does_not_show_its_data() -> None:
    assert repr(File(b"marker", 0o600)) == "File(6 bytes, 0o600)"


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
