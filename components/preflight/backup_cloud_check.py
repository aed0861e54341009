"""Warns of etcd backups in a cloud whose storage HyperShift cannot use."""

from __future__ import annotations

from typing import Final

import pulumi

from identity.catalogue_rows import Scope
from identity.settings import Settings

# openshift/hypershift etcd-upload/azure_uploader.go:72; pull request 9457, which changes that, is open.
_SUFFIX: Final = "core.windows.net"


def warn_of_backups(settings: Settings) -> None:
    """Warn for each hosted cluster with an identity for backups, in every cloud but the public one."""
    if settings.cloud.storage_suffix == _SUFFIX:
        return
    for index, cluster in enumerate(settings.hosted_clusters):
        if fields := cluster.users_of(Scope.BACKUP_STORAGE):
            pulumi.log.warn(
                f"idstack:hostedClusters[{index}] has {' and '.join(fields)}, and HyperShift uploads etcd backups to "
                f"<account>.blob.{_SUFFIX} alone, which {settings.cloud.name} does not have "
                "(openshift/hypershift#9457): the identity is made, and an HCPEtcdBackup fails"
            )
