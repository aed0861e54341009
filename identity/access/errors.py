"""What can go wrong on the way to a token, each with one message that names the fix.

AccessError              shown to a person as it is
├── LoginRefusedError         the login is not described well enough, or its credential cannot be used
├── SignInRefusedError        Entra ID was asked and refused
├── PersonNeededError         only a person at a terminal can go on
├── ForbiddenError       the API server knows who asks and does not allow it
└── AzureRefusedError         ARM, Graph or a vault refused a request, or did not answer
"""

from __future__ import annotations

from http import HTTPStatus


class AccessError(Exception):
    """What was found, what was expected, how to fix it; never key, secret or token."""

    @property
    def is_forbidden(self) -> bool:
        """Whether somebody who is signed in lacks a right."""
        return False


class LoginRefusedError(AccessError):
    """Nothing was asked of Entra ID: an argument is missing or wrong, or the credential cannot be used."""


class SignInRefusedError(AccessError):
    """Entra ID, IMDS or the Azure CLI was asked and did not give a token."""


class PersonNeededError(AccessError):
    """The sign-in needs a person, and there is none."""


class ForbiddenError(AccessError):
    """The API server answered 403."""

    @property
    def is_forbidden(self) -> bool:
        """Always."""
        return True


class AzureRefusedError(AccessError):
    """A request to Azure failed; `status` is the answer's HTTP status, None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_forbidden(self) -> bool:
        """Whether the answer was 403."""
        return self.status == HTTPStatus.FORBIDDEN
