"""The parts of a world, each with the right to read it."""

from __future__ import annotations

from enum import StrEnum


class Part(StrEnum):
    """The parts of a world; each value is the right to read it."""

    STATE = "to read the stack's state in the backend"
    LOCKS = "to list the backend's lock files"
    HISTORY = "to read the stack's history in the backend"
    DECRYPTION = "to use the stack's secrets provider"
    CONFIGURATION = "to read the stack's configuration"
    ACCESS = "to sign in to the management cluster"
    VAULT = "Reader on the key vault"
    SECRETS = "Reader on the key vault, for the metadata of its secrets"
    ADD_ON = "Reader on the management cluster"
    ROLES = "Reader at the scopes of the role assignments"
    APPLICATIONS = "Application.Read.All in Microsoft Graph"
    ISSUERS = "to reach the issuers of the hosted clusters over HTTPS"
    MANAGED_IDENTITIES = "Reader on the resource group of the managed identities"
    CONTROL_PLANES = "get and list on the objects of the control plane's namespace"
    REPORTS = "get on pods/proxy in the control plane's namespace, for the probes' reports"
