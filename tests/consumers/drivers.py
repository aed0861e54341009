"""The controllers of the CSI drivers, asked as their sidecars ask, and the machine that the disk driver attaches to."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from identity.catalogue_rows import Mount
from tests.consumers.consumer import Client, guest_kubeconfig
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack
from tools import golang

_MACHINE: Final = "consumers-worker-0"
_VERSION: Final = "2024-07-01"


class Driver(Client):
    """A controller with the arguments of its Deployment, but for the ports and the level of its log."""

    answers = False
    own_arguments: Sequence[str] = ()

    def arguments(self, mount: Mount) -> Sequence[str]:
        # openshift/csi-operator, assets/overlays/azure-{disk,file}/generated/hypershift/controller.yaml
        return (
            *("--endpoint=unix:///tmp/csi.sock", "--logtostderr", "--metrics-address=", "--v=4"),
            *('--cloud-config-secret-name=""', '--cloud-config-secret-namespace=""', *self.own_arguments),
        )

    def start(self) -> None:
        super().start()
        client = golang.build(Path(__file__).with_name("csi"))
        self.answering = subprocess.Popen(
            [client, self.folder / "csi.sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self) -> None:
        if self.answering is not None:
            self.answering.kill()
            self.answering.communicate()
        super().stop()


class DiskDriver(Driver):
    """A disk is made, attached to a machine, detached and deleted."""

    program = "azuredisk-csi-driver"
    field = "disk"

    def lines(self) -> Sequence[str]:
        volume = f"pvc-consumers {_MACHINE}"
        return [f"{verb} {volume}" for verb in ("create", "publish", "unpublish", "delete")]


class FileDriver(Driver):
    """A share is made in an account, which is made for it, and deleted."""

    program = "azurefile-csi-driver"
    field = "file"
    guest = True
    own_arguments = ("--enable-vhd=false", "--user-agent-suffix=OSS-kubectl", "--kubeconfig=/tmp/kubeconfig")

    def arguments(self, mount: Mount) -> Sequence[str]:
        guest_kubeconfig(self.stack, self.folder)
        return super().arguments(mount)

    def lines(self) -> Sequence[str]:
        return [f"{verb} pvc-consumers" for verb in ("create", "delete")]


def machine_id(stack: LocalStack) -> str:
    """The machine of `make_machine`."""
    return f"{_group(stack)}/providers/Microsoft.Compute/virtualMachines/{_MACHINE}"


def make_machine(stack: LocalStack) -> None:
    """Make a node of the hosted cluster, with an interface in its subnet."""
    *_, cluster = stack.configuration("hostedClusters")
    interface = f"{_group(stack)}/providers/Microsoft.Network/networkInterfaces/{_MACHINE}-nic"
    address = {"name": "pipConfig", "properties": {"subnet": {"id": cluster["subnetID"]}}}
    bodies = {
        interface: {"ipConfigurations": [address]},
        machine_id(stack): {
            "hardwareProfile": {"vmSize": "Standard_D4s_v3"},
            # By which the driver finds a node's machine.
            "osProfile": {"computerName": _MACHINE},
            "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
        },
    }
    for path, properties in bodies.items():
        body = {"location": stack.configuration("location"), "properties": properties}
        OutOfBand(stack).arm("PUT", path, _VERSION, body)


def _group(stack: LocalStack) -> str:
    *_, cluster = stack.configuration("hostedClusters")
    return f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/{cluster['resourceGroup']}"
