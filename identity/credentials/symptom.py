"""A row of the table of symptoms: what an error says, its cause, where the evidence is, and the fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Family(StrEnum):
    """The source of the error. The value is a heading of the page."""

    ENTRA_ID = "Entra ID refuses a sign-in"
    VAULT = "The key vault refuses a read"
    MOUNT = "The CSI driver does not mount"
    POD = "A pod does not run"
    CONDITION = "A condition of a HostedCluster is not as it should be"
    RUN = "Azure Resource Manager refuses a run of the stack"


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One row. `name` is what `idstack explain` takes: a code, a reason, a condition, or a short name for a message.

    `words` are regular expressions of the messages that mean it; without any, the name. `fix` is for a hosted cluster's
    identity, `login` for a person or a pipeline that signs in itself. Both have placeholders,
    those of `GENERIC_PLACEHOLDERS`.
    """

    name: str
    family: Family
    cause: str
    evidence: str
    fix: str
    login: str = ""
    words: tuple[str, ...] = ()

    @property
    def login_fix(self) -> str:
        """The fix for somebody who signs in without a stack."""
        return (self.login or self.fix).format_map(GENERIC_PLACEHOLDERS)

    def is_in(self, text: str) -> bool:
        """Whether the text says it. No code is the beginning of another."""
        return any(re.search(rf"{word}(?![0-9])", text) for word in self.words or (rf"\b{re.escape(self.name)}",))


# The place-holders for a reader who has not named a stack.
GENERIC_PLACEHOLDERS: Final[Mapping[str, str]] = {
    "up": "`.venv/bin/idstack up --stack <stack>`",
    "repair": "`.venv/bin/idstack up --stack <stack> --refresh`",
    "objects": "`.venv/bin/idstack up --stack <stack> --refresh`; with `clusterSide: hypershift` HyperShift makes it",
    "recover": "`.venv/bin/idstack recover --stack <stack>`",
    "renewal": "`.venv/bin/idstack rotate --stack <stack> --identity <cluster>/<identity> --force`",
    "rotate": ".venv/bin/idstack rotate --stack <stack> --identity <cluster>/<identity>",
    "attach": "`az vmss identity assign`, for each scale set of the nodes",
    "client": "<client id>",
    "secret": "--vault-name <vault> --name <secret>",
}


# Of azure-identity and of azure-native's azidentity.
_NO_AZ: Final = "not found on path"
_AZ_LOGIN: Final = re.compile(r"""az login( --[\w-]+ ("[^"]*"|[^\s"'\\]+))+""")


def az_login(message: str, otherwise: str = "az login") -> str:
    """The command, in backticks, with which the Azure CLI says in this message that a person signs in again."""
    own = _AZ_LOGIN.search(message.replace('\\"', '"'))
    lacking = ", which needs the Azure CLI: `az` is not on PATH" if _NO_AZ in message else ""
    return f"`{own[0] if own else otherwise}`{lacking}"
