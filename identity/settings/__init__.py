"""Typed and validated configuration of a stack.

`load_settings` takes Pulumi's raw configuration and returns settings that need no further check, or raises
`ConfigurationError` with every problem at once. What a value looks like is in `types.py` and `arm_ids.py`, which keys
there are in `model.py`, `access.py`, `creation.py` and `workloads.py`, what must fit together in `rules.py` and the
other `*_rules.py`.
"""

from identity.settings.access import AccessSettings
from identity.settings.creation import CreationSettings, NodePoolSettings
from identity.settings.load import load_settings
from identity.settings.model import (
    CredentialSettings,
    HostedClusterObjectSettings,
    HostedClusterSettings,
    IdentitySettings,
    ImportedCredentialSettings,
    KeyVaultUserSettings,
    KmsKey,
    KmsSettings,
    ManagementClusterSettings,
    ProbeSettings,
    PropagationSettings,
    Settings,
    VaultSettings,
)
from identity.settings.problems import ConfigurationError, Problem
from identity.settings.workloads import WorkloadSettings

__all__ = [
    "AccessSettings",
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
    "NodePoolSettings",
    "ProbeSettings",
    "Problem",
    "PropagationSettings",
    "Settings",
    "VaultSettings",
    "WorkloadSettings",
    "load_settings",
]
