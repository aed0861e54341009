"""Typed and validated configuration of a stack.

`load_settings` takes Pulumi's raw configuration and returns settings that need no further check, or raises
`ConfigurationError` with every problem at once. What a value looks like is in `types.py` and `arm_ids.py`. Which keys
there are is in `model.py`, `hosted_clusters.py`, `kms.py`, `endpoint_access.py`, `access.py`, `creation.py` and
`workloads.py`; `reference.py` writes their documentation. What must fit together is in `rules.py` and the other
`*_rules.py`.
"""

from identity.settings.access import AccessSettings
from identity.settings.creation import ClusterNetworkSettings, CreationSettings, NodePoolSettings
from identity.settings.hosted_clusters import (
    HostedClusterObjectSettings,
    HostedClusterSettings,
    IdentitySettings,
    ImportedCredentialSettings,
)
from identity.settings.infrastructure import NetworkSettings
from identity.settings.issuer import SigningKeySettings
from identity.settings.kms import KmsKey, KmsSettings
from identity.settings.load import load_settings
from identity.settings.model import (
    CredentialSettings,
    KeyVaultUserSettings,
    ManagementClusterSettings,
    ProbeSettings,
    PropagationSettings,
    Settings,
    VaultSettings,
)
from identity.settings.monitoring import MonitoringSettings
from identity.settings.problems import ConfigurationError, Problem
from identity.settings.workloads import WorkloadSettings

__all__ = [
    "AccessSettings",
    "ClusterNetworkSettings",
    "ConfigurationError",
    "CreationSettings",
    "CredentialSettings",
    "HostedClusterObjectSettings",
    "HostedClusterSettings",
    "IdentitySettings",
    "ImportedCredentialSettings",
    "KeyVaultUserSettings",
    "KmsKey",
    "KmsSettings",
    "ManagementClusterSettings",
    "MonitoringSettings",
    "NetworkSettings",
    "NodePoolSettings",
    "ProbeSettings",
    "Problem",
    "PropagationSettings",
    "Settings",
    "SigningKeySettings",
    "VaultSettings",
    "WorkloadSettings",
    "load_settings",
]
