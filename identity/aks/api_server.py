"""Requests to a kubeconfig's API server as its user: does the sign-in work, what is allowed, what exists.

The exec plugin is run exactly as client-go will run it, because Pulumi's Kubernetes provider loses its error output.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import httpx

from identity.aks import azure_rbac, cluster_user
from identity.aks.azure_rbac import DENIAL, AksCluster
from identity.aks.cluster_user import ClusterCredential, address, client, trust_of, unusable_cluster
from identity.aks.kinds import CustomKind, required_kinds, sources
from identity.aks.kubeconfig import Kubeconfig, MalformedKubeconfigError
from identity.aks.permissions import Permission, needed, rights_of
from identity.aks.sign_in import claims_of
from identity.azure.errors import AccessError, ForbiddenError
from identity.credentials.backoff import Backoff
from identity.settings import Settings

_TIMEOUT: Final = 15.0
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0
_AT_ONCE: Final = 8  # some sixty reviews, each a round trip


class ClusterNotReadyError(AccessError):
    """The cluster can be reached, but something is still missing."""


class ApiServerUnavailableError(AccessError):
    """The API server cannot be reached, or does not accept the token; both are temporary for a new cluster."""


@dataclass(frozen=True)
class AccessRequirements:
    """What must exist before the first object."""

    permissions: tuple[Permission, ...] = ()
    kinds: tuple[CustomKind, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The permissions of a stack's deployer, and the kinds of its objects."""
        return cls(needed(rights_of(settings)), required_kinds(settings))


class ApiServer:
    """The API server of `aks` as the user of a kubeconfig's `context`, the current one by default.

    A context manager. Raises AccessError.
    """

    def __init__(
        self,
        kubeconfig: Kubeconfig,
        aks: AksCluster,
        environ: Mapping[str, str] = os.environ,
        *,
        context: str | None = None,
    ) -> None:
        self._cluster, self._user = _usable(kubeconfig, kubeconfig.chosen(context))
        self._aks = aks
        self._environ = environ
        self.lacking: tuple[Permission, ...] = ()
        """The permissions that were missing last."""
        self._absent: list[CustomKind] = []
        self._credential: ClusterCredential | None = None
        self.server = address(self._cluster)
        self._trust = trust_of(self._cluster)
        self._http = client(self._cluster, self._trust, _TIMEOUT)

    def __enter__(self) -> ApiServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def check_sign_in(self) -> None:
        """Sign in and be recognised; raises AccessError with the cause and its fix."""
        answer = self.request("GET", "/api")
        # A known caller who may not read this path is signed in all the same.
        if answer.is_error and answer.status_code != HTTPStatus.FORBIDDEN:
            raise AccessError(f"the API server at {self.server} answers {answer.status_code}: {answer.text.strip()}")

    def token(self) -> str:
        """A token that the API server accepts; raises AccessError as `check_sign_in` does."""
        self.check_sign_in()
        return self._signed_in().token

    def read(self, path: str) -> dict[str, Any] | None:
        """The object or list at a path (`/apis/<group>/<version>/...`); None if there is none, or no such kind.

        Raises AccessError for every other answer.
        """
        answer = self.request("GET", path)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        if answer.status_code == HTTPStatus.FORBIDDEN:
            raise ForbiddenError(f"{self.who} may not read {path} at {self.server}")
        if answer.is_error:
            raise AccessError(f"{path} at {self.server} answers {answer.status_code}: {answer.text.strip()}")
        document: dict[str, Any] = answer.json()
        return document

    def missing(self, required: AccessRequirements) -> list[str]:
        """The requirements that are not met (yet), in words."""
        self._signed_in()
        refused = self._refused(required.permissions)
        self.lacking = tuple(refused)
        if any(DENIAL in why for why in refused.values()):
            self._aks = replace(self._aks, has_azure_rbac=True)
        self._absent = [kind for kind in required.kinds if not self._is_served(kind)]
        return [
            *([f"permissions: {', '.join(map(str, refused))}"] if refused else []),
            *([f"kinds: {', '.join(map(str, self._absent))}"] if self._absent else []),
        ]

    def wait_for(
        self,
        required: AccessRequirements,
        seconds: float,
        *,
        is_new: bool = False,
        log: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Return when every requirement is met; `log` gets what it waits for whenever that changes. Raises
        ClusterNotReadyError.

        With `is_new` it also waits for the server itself: a new cluster's name and trust in Entra ID take a while.
        """
        deadline, backoff, logged = clock() + seconds, Backoff(_FIRST_PAUSE, _LONGEST_PAUSE), ""
        while text := self._still_missing(required, is_new):
            if clock() >= deadline:
                raise ClusterNotReadyError(
                    f"the cluster at {self.server} still lacks after {seconds:g} s: {text}. {self.hint}"
                )
            if text != logged:
                logged = text
                log(f"waiting for the cluster at {self.server}: {text}")
            sleep(backoff.next())

    def _still_missing(self, required: AccessRequirements, is_new: bool) -> str:
        try:
            return "; ".join(self.missing(required))
        except ApiServerUnavailableError as error:
            if not is_new:
                raise
            return f"an answer: {error}"

    @property
    def who(self) -> str:
        """Object id of the signed-in identity."""
        return str(claims_of(self._signed_in().token).get("oid", "the signed-in identity"))

    @property
    def hint(self) -> str:
        """How to add the permissions and kinds that were missing last."""
        helps = [f"Permissions: {self._grant}"] if self.lacking else []
        if self._absent:
            helps.append(f"Kinds: {'; '.join(sources(self._absent))}")
        return ". ".join(helps)

    @property
    def _grant(self) -> str:
        is_person = claims_of(self._signed_in().token).get("idtyp") == "user"
        kind = "User" if is_person else "ServicePrincipal"
        if not self._aks.has_azure_rbac:
            subject = "<object id of a group of theirs>" if is_person else f"{self.who} --principal-type {kind}"
            return (
                f"give {self.who} (an object id, not an application id) the roles that `.venv/bin/idstack rbac "
                f"{subject}` prints"
            )
        role = azure_rbac.role_for(self.lacking)
        return (
            f"Azure RBAC decides on this cluster; give {self.who} the role {role.name}, which takes up to five "
            f"minutes: `{azure_rbac.assignment(role.guid, self._aks.id, self.who, kind)}`"
        )

    def _refused(self, permissions: Sequence[Permission]) -> dict[Permission, str]:
        """The missing permissions, with the reason if the API server reports it.

        The cluster-wide ones are asked first: an administrator, or a ClusterRole, has most of them.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            broad = list(dict.fromkeys(permission.everywhere for permission in permissions))
            reasons = dict(zip(broad, pool.map(self._review, broad), strict=True))
            narrow = [
                permission
                for permission in permissions
                if permission not in reasons and reasons[permission.everywhere] is not None
            ]
            reasons |= zip(narrow, pool.map(self._review, narrow), strict=True)
        return {permission: why for permission in permissions if (why := reasons.get(permission)) is not None}

    def _review(self, permission: Permission) -> str | None:
        """Why an access review refuses; None if it allows."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": permission.attributes},
        }
        answer = self.request("POST", _REVIEWS, body=review)
        status = answer.json()["status"] if answer.is_success else {}
        return None if status.get("allowed") else str(status.get("reason", ""))

    def _is_served(self, kind: CustomKind) -> bool:
        answer = self.request("GET", f"/apis/{kind.version}")
        return answer.is_success and any(
            resource["name"] == kind.plural for resource in answer.json().get("resources", ())
        )

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str | None = None
    ) -> httpx.Response:
        """The answer to any request; `kind` is the body's media type, by default JSON, and a merge patch for PATCH.

        Raises ApiServerUnavailableError.
        """
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        credential = self._signed_in()
        sent = [*credential.headers, *([("Content-Type", kind)] if body is not None else [])]
        headers = [(name.encode(), value.encode()) for name, value in sent]
        try:
            answer = self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise ApiServerUnavailableError(
                f"the API server at {self.server} cannot be reached ({error}); is the cluster running, may this "
                "machine's address reach it (authorized IP ranges), and if it is private, is this machine in its "
                "network? managementCluster.access.publicFqdn: true takes the public name of a private cluster"
            ) from None
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise ApiServerUnavailableError(
                f"the API server at {self.server} does not accept the {_refusal_reason(credential)}"
            )
        return answer

    def _signed_in(self) -> ClusterCredential:
        if self._credential is None:
            credential = cluster_user.credential(self._user, self._cluster, self._environ)
            if credential.certificate is not None:
                cluster_user.present(credential.certificate, self._trust)
            self._credential = credential
        return self._credential


def api_server_of(kubeconfig: Path) -> ApiServer:
    """The API server of a kubeconfig that belongs to no cluster of AKS, as a context manager. Raises AccessError."""
    return ApiServer(Kubeconfig.read(kubeconfig), AksCluster(""))


def _usable(kubeconfig: Kubeconfig, context: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cluster and the user of a context; raises MalformedKubeconfigError for what kubectl refuses."""
    entry = kubeconfig.entries("contexts")[context]
    cluster, user = kubeconfig.entries("clusters")[entry["cluster"]], kubeconfig.entries("users")[entry["user"]]
    problems = [
        *(f'the cluster "{entry["cluster"]}": {text}' for text in unusable_cluster(cluster)),
        *(f'the user "{entry["user"]}": {text}' for text in cluster_user.unusable_user(user)),
    ]
    if problems:
        raise MalformedKubeconfigError(f"{kubeconfig.name} cannot be used: {'; '.join(problems)}. Fix the file")
    return cluster, user


def _refusal_reason(credential: ClusterCredential) -> str:
    """What was refused, and the likely reason for a token, from its own claims."""
    if not credential.token:
        return "client certificate" if credential.certificate else "user of the kubeconfig, who presents nothing"
    claims = claims_of(credential.token)
    tenant, audience, who = (claims.get(name) for name in ("tid", "aud", "oid"))
    description = f"token: its tenant is {tenant}, its audience {audience}, its object id {who}"
    if "groups" in (claims.get("_claim_names") or {}):
        return f"{description}; the identity is in more than 200 groups, which AKS does not accept for applications"
    return (
        f"{description}; it must be the cluster's tenant and the AKS server application (--server-id), and the cluster "
        "must use AKS-managed Entra ID"
    )
