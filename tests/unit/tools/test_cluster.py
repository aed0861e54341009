"""The control plane's commands are built once for each state of their pins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.tools.conftest import Machine
from tools import cluster
from tools.steps import SetupError


@pytest.fixture(autouse=True)
def pins(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """kube-apiserver 1.99.3 and etcd 3.9.1 are pinned."""
    for name, text in {
        "kube-apiserver": "go 1.25.11\nrequire k8s.io/kubernetes v1.99.3\n",
        "etcd": "go 1.25.11\nrequire go.etcd.io/etcd/server/v3 v3.9.1\n",
    }.items():
        (machine.root / name).mkdir()
        (machine.root / name / "go.mod").write_text(text)
        (machine.root / name / "go.sum").write_text("")
    monkeypatch.setattr(cluster, "TOOLS", machine.tools)
    monkeypatch.setattr(cluster, "RECORD", machine.tools / "cluster.json")
    monkeypatch.setattr(cluster, "_KUBERNETES_MODULE", machine.root / "kube-apiserver")
    monkeypatch.setattr(cluster, "_ETCD_MODULE", machine.root / "etcd")


def recorded(machine: Machine) -> Path:
    return Path(json.loads((machine.tools / "cluster.json").read_text())["bin"])


def test_four_commands_are_built_from_the_pins_once(machine: Machine) -> None:
    machine.add_go()
    assert cluster.ensure() == "1.99.3 built from tools/kube-apiserver"
    assert machine.ran().count("go build") == 4
    names = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
    assert sorted(file.name for file in recorded(machine).iterdir()) == names

    assert cluster.ensure() == "up to date, 1.99.3"
    assert machine.ran() == []
    before = recorded(machine)
    (machine.root / "etcd/go.mod").write_text("go 1.25.11\nrequire go.etcd.io/etcd/server/v3 v3.9.2\n")
    assert cluster.ensure() == "1.99.3 built from tools/kube-apiserver"
    assert recorded(machine) != before, "another pin is another build"


def test_half_a_build_is_none(machine: Machine) -> None:
    machine.add(machine.first / "go", 'echo "no such module"; exit 1')
    with pytest.raises(SetupError, match=r"(?s)the Go build failed:\nno such module.*leave CLUSTER out"):
        cluster.ensure()
    assert not (machine.tools / "cluster.json").exists()

    machine.add_go()
    assert cluster.ensure() == "1.99.3 built from tools/kube-apiserver"
