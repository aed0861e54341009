"""The errors that a person on call reads: what each says, its cause, where the evidence is, and the fix.

The doctor, the sign-in to AKS, the rehearsal and `idstack explain` take their words from the table `symptoms.yaml`, and
so does `docs/reference/symptoms.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final


class Family(StrEnum):
    """The source of the error. The value is its heading, in the table and on the page."""

    ENTRA_ID = "Entra ID refuses a sign-in"
    VAULT = "The key vault refuses a read"
    MOUNT = "The CSI driver does not mount"
    POD = "A pod does not run"
    CONDITION = "A condition of a HostedCluster is not as it should be"
    RUN = "Azure Resource Manager refuses a run of the stack"


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One row. `fix` and `login` have placeholders, those of `GENERIC_PLACEHOLDERS`."""

    name: str
    family: Family
    cause: str
    evidence: str
    fix: str
    login: str = ""
    words: Sequence[str] = ()

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


@cache
def symptoms() -> tuple[Symptom, ...]:
    """The rows of the table, in its order."""
    from identity import yaml_text  # slow, and `idstack token` runs at each sign-in of kubectl

    table = yaml_text.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return tuple(
        Symptom(name=name, family=Family(family), **row) for family, rows in table.items() for name, row in rows.items()
    )


def fix_of_read(message: str) -> str:
    """The fix of a read of Azure that failed with this message; a role is none where nobody was refused."""
    row = find(message, Family.ENTRA_ID, Family.RUN)
    if row is not None and row.name != "LinkedAuthorizationFailed":
        provider = re.search(r"namespace '([\w.]+)'", message)
        return row.login_fix.replace("<name>", provider[1] if provider else "<name>")
    if row is not None or re.search(r"\b403\b", message):
        return "let the identity that runs this read it (role Reader), then try again"
    return "see to the sign-in and the network (proxy, firewall), then try again"


def find(text: str, *families: Family) -> Symptom | None:
    """The first row of these families (by default of all) that the text matches."""
    return next((row for row in symptoms() if (not families or row.family in families) and row.is_in(text)), None)


# Of azure-identity and of azure-native's azidentity.
_NO_AZ: Final = "not found on path"
_AZ_LOGIN: Final = re.compile(r"""az login( --[\w-]+ ("[^"]*"|[^\s"'\\]+))+""")


def az_login(message: str, otherwise: str = "az login") -> str:
    """The command, in backticks, with which the Azure CLI says in this message that a person signs in again."""
    own = _AZ_LOGIN.search(message.replace('\\"', '"'))
    lacking = ", which needs the Azure CLI: `az` is not on PATH" if _NO_AZ in message else ""
    return f"`{own[0] if own else otherwise}`{lacking}"
