"""The errors of sign-ins and requests, each with one message that names the fix.

AccessError                       shown to a person as it is
├── LoginRefusedError             the login is incomplete, or its credential cannot be used
├── SignInRefusedError            Entra ID was asked and refused
├── PersonNeededError             only a person at a terminal can continue
├── ForbiddenError                the API server knows the caller and does not allow the request
├── AzureRefusedError             ARM, Graph or a vault refused a request, or did not answer
├── ApiServerUnavailableError     the API server cannot be reached, or does not accept the token (`aks/api_server.py`)
├── ClusterNotReadyError          the cluster still lacks something (`aks/api_server.py`)
└── MalformedKubeconfigError      a kubeconfig cannot be used (`aks/kubeconfig.py`)
"""

from __future__ import annotations

from http import HTTPStatus


class AccessError(Exception):
    """What was found, what was expected, how to fix it; never a key, secret or token."""

    @property
    def is_forbidden(self) -> bool:
        """Whether the caller is signed in and lacks a right."""
        return False


class LoginRefusedError(AccessError):
    """Nothing was asked of Entra ID: an argument is missing or wrong, or the credential cannot be used."""


class SignInRefusedError(AccessError):
    """Entra ID, IMDS or the Azure CLI was asked and did not give a token."""


class PersonNeededError(AccessError):
    """The sign-in needs a person, and no terminal is there."""


class ForbiddenError(AccessError):
    """The API server answered 403."""

    @property
    def is_forbidden(self) -> bool:
        return True


class AzureRefusedError(AccessError):
    """A request to Azure failed; `status` is the answer's HTTP status, None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_forbidden(self) -> bool:
        return self.status == HTTPStatus.FORBIDDEN
