"""The error answers of the services, whose statuses, codes and words are the rows of `refusals.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from localcloud.core import yaml_text

ROWS: Final = Path(__file__).resolve().parents[1] / "refusals.yaml"
_TITLES: Final = {
    "entra": "Entra ID",
    "graph": "Microsoft Graph",
    "keyvault": "Key Vault",
    "blob": "Blob Storage",
    "imds": "IMDS",
    "aks-webhooks": "AKS's webhooks",
    "arm": "Azure Resource Manager",
}


class ServiceError(Exception):
    """An error answer: HTTP status, the service's own error code and message, and additional headers.

    `inner` is a second code, if it has one: Key Vault's inner error, Entra's AADSTS number.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None, inner: str = ""
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.inner = inner


def refusal(case: str, headers: Mapping[str, str] | None = None, /, **words: object) -> ServiceError:
    """The error of the row `case`, which begins with its code; `words` are for the braces in its text."""
    [(codes, text)] = rows()[case].items()
    status, _, inner = str(codes).partition(" ")
    return ServiceError(int(status), case.partition(" ")[0], text.format(**words), headers, inner)


def not_emulated(service: str, what: str) -> ServiceError:
    """501: Azure would do this, the local cloud does not."""
    return refusal("NotEmulated", what=f"{what} of {_TITLES.get(service, service)}")


@cache
def rows() -> Mapping[str, Mapping[str | int, str]]:
    """By case the text, under its status and the inner code behind it."""
    table: Mapping[str, Mapping[str | int, str]] = yaml_text.load(ROWS.read_text(encoding="utf-8"))
    return table
