"""The clients of this folder, with an operator's or driver's library in them: their mounts, and what they are asked."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from identity.catalogue_rows import Mount
from tests.consumers.consumer import Client, guest_kubeconfig
from tests.consumers.drivers import machine_id
from tools import golang


class Ingress(Client):
    """The DNS client of the ingress operator: `*.apps` in both zones of the HostedCluster."""

    program = "ingress"
    field = "ingress"

    def arguments(self, mount: Mount) -> Sequence[str]:
        return self.stack.environment.subscription_id, self.cluster["infraID"]

    def lines(self) -> Sequence[str]:
        dns = self.cluster["dns"]
        zones = (dns["publicZoneID"], dns["privateZoneID"])
        return [f"{verb} *.apps.hc1.{dns['baseDomain']}. {zone}" for verb in ("ensure", "delete") for zone in zones]


class ImageRegistry(Client):
    """The storage client of the image registry operator: an account, and a container in it."""

    program = "image-registry"
    field = "imageRegistry"

    def arguments(self, mount: Mount) -> Sequence[str]:
        location = self.stack.configuration("location")
        return self.stack.environment.subscription_id, self.cluster["resourceGroup"], location

    def lines(self) -> Sequence[str]:
        return [f"{verb} imageregistryhc1" for verb in ("check", "create", "fill", "empty", "delete")]


class Network(Client):
    """The cloud's client of the network config controller: an address more for a machine."""

    program = "network"
    field = "network"

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.platform is not None
        secret = f"/api/v1/namespaces/{self.namespace}/secrets/{mount.platform.secret}"
        with self.stack.kubernetes("administrator") as http:
            data = http.get(secret).raise_for_status().json()["data"]
        # The volume of the pod that the probe's has not.
        (directory := self.folder / "cloudprovider").mkdir(exist_ok=True)
        for name, value in data.items():
            (directory / name).write_bytes(base64.b64decode(value))
        return ("/tmp/cloudprovider",)

    def lines(self) -> Sequence[str]:
        return [f"{verb} {machine_id(self.stack)} 10.0.0.77" for verb in ("read", "assign", "release")]


class ClusterApi(Client):
    """The client of Cluster API's provider: a machine with its interface."""

    program = "cluster-api"
    field = "nodePoolManagement"

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.cluster_identity
        guest_kubeconfig(self.stack, self.folder)
        return (
            *("/tmp/kubeconfig", self.namespace, self.cluster["name"], self.cluster["resourceGroup"]),
            *(self.stack.configuration("location"), self.cluster["subnetID"]),
        )

    def lines(self) -> Sequence[str]:
        return [f"{verb} consumers-worker-1" for verb in ("read", "make", "delete")]


class AzClient(Client):
    """What the cloud controller manager and the CSI drivers sign in with, for everybody who has Go."""

    program = "azclient"
    kind: ClassVar[str]

    @classmethod
    def missing(cls) -> str:
        return ""

    @classmethod
    def binary(cls) -> Path:
        return golang.build(Path(__file__).with_name("azclient"))

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.config is not None
        return mount.config.path, self.kind

    def lines(self) -> Sequence[str]:
        return [f"{verb} azclienthc1" for verb in ("list", "create", "delete")]


class CloudProviderClient(AzClient):
    """With the cloud controller manager's mounts."""

    field = "cloudProvider"
    kind = "loadBalancers"


class DiskClient(AzClient):
    """With the disk driver's mounts."""

    field = "disk"
    kind = "disks"


class FileClient(AzClient):
    """With the file driver's mounts."""

    field = "file"
    kind = "storageAccounts"
