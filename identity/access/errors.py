"""What can go wrong on the way to a token, each with one message that names the fix.

AccessError              shown to a person as it is
├── LoginRefused         the login is not described well enough, or its credential cannot be used
├── SignInRefused        Entra ID was asked and refused
├── PersonNeeded         only a person at a terminal can go on
└── AzureRefused         ARM, Graph or a vault refused a request, or did not answer
"""

from __future__ import annotations


class AccessError(Exception):
    """What was found, what was expected, how to fix it; never key, secret or token."""


class LoginRefused(AccessError):
    """Nothing was asked of Entra ID: an argument is missing or wrong, or the credential cannot be used."""


class SignInRefused(AccessError):
    """Entra ID, IMDS or the Azure CLI was asked and did not give a token."""


class PersonNeeded(AccessError):
    """The sign-in needs a person, and there is none."""


class AzureRefused(AccessError):
    """A request to Azure failed; `status` is the answer's HTTP status, None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
