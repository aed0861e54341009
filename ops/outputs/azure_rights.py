"""The rights that an administrator grants in Azure, as commands of the Azure CLI and as JSON."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from identity.aks.azure_rbac import assignment
from identity.azure.deployer_rights import CONDITION_VERSION, AzureGrant, deployer_grants, reader_grants, renewal_role
from identity.settings import Settings
from ops.stack.errors import message

_VERSION: Final = ("--condition-version", CONDITION_VERSION)


class Purpose(StrEnum):
    """The holder of the rights: the deployer, the preview identity, or a pipeline that only renews."""

    DEPLOYER = "deployer"
    READER = "reader"
    RENEWALS = "renewals"


@dataclass(frozen=True)
class AzureRights:
    """Roles at scopes, a custom role for this stack alone, and notes about rights that the Azure CLI cannot grant."""

    purpose: Purpose
    grants: tuple[AzureGrant, ...]
    custom_role: dict[str, Any] | None
    notes: tuple[str, ...]

    def commands(self, object_id: str, principal_type: str) -> str:
        """Lines for a shell; each role has a comment with its reason."""
        lines: list[str] = [f"# {note}" for note in self.notes]
        if self.custom_role is not None:
            lines += [
                "# the role for renewals, created once",
                shlex.join(["az", "role", "definition", "create", "--role-definition", json.dumps(self.custom_role)]),
            ]
            name, scopes = self.custom_role["Name"], self.custom_role["AssignableScopes"]
            lines += [assignment(name, scope, object_id, principal_type) for scope in scopes]
        for grant in self.grants:
            limited = () if grant.condition is None else ("--condition", grant.condition, *_VERSION)
            line = assignment(grant.role.guid, grant.scope, object_id, principal_type, *limited)
            lines += [f"# {grant.role.name}: {grant.reason}", line]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The same as a document: `purpose`, `grants`, `customRole` (null without one) and `notes`."""
        document = {
            "purpose": self.purpose,
            "grants": [asdict(grant) for grant in self.grants],
            "conditionVersion": CONDITION_VERSION,
            "customRole": self.custom_role,
            "notes": list(self.notes),
        }
        return json.dumps(document, indent=2)


def rights(settings: Settings, purpose: Purpose, *, to_people: bool = False) -> AzureRights:
    """The rights that a purpose needs in a stack; a group of people needs others than an application."""
    match purpose:
        case Purpose.DEPLOYER:
            notes = [message("azure_rights.of-people" if to_people else "azure_rights.application")]
            if settings.shared_stack is not None:
                notes.append(message("azure_rights.shared-vault", stack=settings.shared_stack))
            return AzureRights(purpose, tuple(deployer_grants(settings, to_people=to_people)), None, tuple(notes))
        case Purpose.READER:
            return AzureRights(purpose, tuple(reader_grants(settings)), None, ())
        case Purpose.RENEWALS:
            note = message("azure_rights.of-people" if to_people else "azure_rights.owner")
            return AzureRights(purpose, (), renewal_role(settings), (note,))
