"""The clients of this folder, with an operator's or driver's library in them: their mounts, and what they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from identity.catalogue_rows import Mount
from tests.consumers.consumer import Client


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
        return (
            *(self.stack.environment.subscription_id, self.cluster["resourceGroup"]),
            self.stack.configuration("location"),
        )

    def lines(self) -> Sequence[str]:
        return [f"{verb} imageregistryhc1" for verb in ("check", "create", "fill", "empty", "delete")]


class AzClient(Client):
    """What the cloud controller manager and the CSI drivers sign in with, for everybody who has Go."""

    program = "azclient"
    kind: ClassVar[str]

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
