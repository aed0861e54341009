"""Typed and validated configuration of a stack.

`load_settings` turns Pulumi's raw configuration into settings that need no further check, or raises
`ConfigurationError` with every problem. `schema/` has the keys and the form of their values, `rules/` the rules between
them.
"""

from identity.settings.load import load_settings
from identity.settings.schema.access import AccessSettings, CreationSettings
from identity.settings.schema.endpoints import NetworkSettings, SigningKeySettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings, IdentitySettings, ImportedCredentialSettings
from identity.settings.schema.kms import KmsKey, KmsSettings
from identity.settings.schema.model import ManagementClusterSettings, Settings, VaultSettings
from identity.settings.schema.problems import ConfigurationError, Problem
from identity.settings.schema.workloads import WorkloadSettings

__all__ = [
    "AccessSettings",
    "ConfigurationError",
    "CreationSettings",
    "HostedClusterSettings",
    "IdentitySettings",
    "ImportedCredentialSettings",
    "KmsKey",
    "KmsSettings",
    "ManagementClusterSettings",
    "NetworkSettings",
    "Problem",
    "Settings",
    "SigningKeySettings",
    "VaultSettings",
    "WorkloadSettings",
    "load_settings",
]
