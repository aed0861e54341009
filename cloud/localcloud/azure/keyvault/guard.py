"""The requests to a vault, and the documents in its answers (Key Vault REST 7.4: SecretBundle, KeyBundle and others).

Every request is checked in Azure's order: vault, bearer, limits, api-version, then what the operation understands. The
vault is named by the Host header; a loopback Host means the stack's own vault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.keyvault import errors
from localcloud.azure.keyvault.certificates import CertificateVersion, DeletedCertificate
from localcloud.azure.keyvault.keys import KeyVersion, base64url
from localcloud.azure.keyvault.secrets import DeletedSecret, KeyVault, SecretVersion, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.faults import TokenBuckets
from localcloud.azure.shared.http import authority_of, bearer, cloud_of, is_loopback, json_object
from localcloud.azure.shared.refusals import ServiceError, refusal
from localcloud.azure.shared.understood import Members, check_headers, check_query, first_unknown, members_of
from localcloud.azure.tenant.tokens import Caller, InvalidTokenError, audiences
from localcloud.core import documents, yaml_text
from localcloud.core.certificates import thumbprint
from localcloud.core.store import Document

# Key Vault's limits: transactions of one vault by all clients in ten seconds.
#
# Source of rule and figures: Microsoft Learn, "Azure Key Vault service limits" and "Azure Key Vault throttling
# guidance". Left out: the subscription's own limit, five times that of a vault, and that larger keys cost more. A
# secret that ARM writes is counted at ARM alone.


# By method and path of the route.
_CREATED: Final = frozenset({("PUT", "/secrets/{name}"), ("POST", "/certificates/{name}/import")})
_CREATED_KEY: Final = ("POST", "/keys/{name}/create")


class VaultThrottle:
    """Counts requests. `limits` has (bucket size, refilled per second) for `create`, `create_key`, `key`, `other`."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._buckets = TokenBuckets(limits)

    def take(self, vault: KeyVault, kind: str) -> None:
        """Count one request to a vault; raises ServiceError, 429, when the limit is reached. Such a request is not
        counted ("Azure Key Vault throttling guidance").
        """
        holder = vault.name.lower()
        if self._buckets.wait(holder, kind):
            raise refusal("Throttled")
        self._buckets.take(holder, kind)


def kind_of(method: str, path: str) -> str:
    """Which limit the requests of a route count for."""
    if (method, path) in _CREATED:
        return "create"
    if (method, path) == _CREATED_KEY:
        return "create_key"
    return "key" if path.startswith("/keys") else "other"


LISTED: Final = "maxresults $skiptoken"
"""The query options of a list."""
_PAGE_SIZE: Final = 25
_VERSION: Final = re.compile(r"(\d\.\d|\d{4}-\d{2}-\d{2})(-preview(\.\d)?)?")
# Words that Key Vault's REST 7.4 has in the place of a version.
_NO_VERSIONS: Final = frozenset({"attestation", "backup", "merge", "release", "restore", "rotate"})
# Clients send back members of answers; the service ignores them.
_ANSWERED: Final[Members] = dict.fromkeys(("id", "kid", "managed"))
_FILE: Final = yaml_text.load(Path(__file__).with_name("members.yaml").read_bytes())
_BODIES: Final[Mapping[str, Members]] = {name: members_of(asked) for name, asked in _FILE.items()}


@dataclass(frozen=True)
class VaultCall:
    """A request with its vault and caller, which has nothing that its operation would ignore."""

    request: Request
    vault: KeyVault
    caller: Caller
    body: Document

    @property
    def name(self) -> str:
        return self.part("name")

    def part(self, name: str) -> str:
        """A part of the path, "" when it is not there; raises 501 for something below a version."""
        text = str(self.request.path_params.get(name, "")).strip("/")
        if name == "version" and ("/" in text or text in _NO_VERSIONS):
            raise errors.not_emulated(f"{self.request.method} {self.request.url.path}")
        return text


Handler = Callable[[VaultCall], dict[str, Any] | list[dict[str, Any]] | None]
"""Answers with a document, with the items of a list, or with nothing."""


class VaultGuard:
    """Authenticates and checks every request to the data plane."""

    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud
        self.store = cloud.store
        self._vaults = Vaults(Resources(cloud.store))
        self._throttle = VaultThrottle(cloud.faults.vault_requests)

    def route(
        self,
        method: str,
        path: str,
        handler: Handler,
        action: str | None,
        query: str = "",
        body: str = "",
        *,
        changes: bool | None = None,
        status: int = 200,
    ) -> Route:
        """A route with these checks, in the service's own order.

        Args:
            action: the data action that it needs, on the item in the path if there is one; None: the handler asks.
            query: the options that the operation reads, with blanks between.
            body: the row of `members.yaml` that has the members of its body; without one it has none.
            changes: whether it changes the vault; None: as its method says.
            status: of an answer with a document.
        """
        kind, is_change = kind_of(method, path), method != "GET" if changes is None else changes

        known = {**_ANSWERED, **(_BODIES[body] if body else {})}

        def unknown(what: str) -> ServiceError:
            return errors.not_emulated(f"{what} of {method} {path}")

        async def authorized(request: Request) -> Response:
            vault = self._vault(request)
            caller = self._caller(request)
            self._throttle.take(vault, kind)
            _check_version(request.query_params.get("api-version", ""))
            if is_change and self._cloud.holder.now().is_read_only(vault.name):
                raise refusal("Forbidden failover", vault=vault.name)
            check_query(request, {"api-version", *query.split()}, unknown)
            check_headers(request.headers, (), unknown)
            document = await json_object(request)
            if (member := first_unknown(document, known)) is not None:
                raise errors.bad_parameter(f"Unrecognized property '{'.'.join(member)}' in the request body.")
            call = VaultCall(request, vault, caller, document)
            if action is not None:
                self.require(call, action)
            answer = handler(call)
            if answer is None:
                return Response(status_code=204)
            content = _page(call, answer) if isinstance(answer, list) else answer
            return JSONResponse(content, status_code=status)

        return Route(path, authorized, methods=[method])

    def _vault(self, request: Request) -> KeyVault:
        host, suffix = request.url.hostname or "", cloud_of(request.scope).vault_suffix
        if host.endswith(f".{suffix}"):
            name = host.removesuffix(f".{suffix}")
            vault = self._vaults.named(name)
            missing = f"There is no vault {name!r} in the local cloud."
        elif host == "localhost" or is_loopback(host):
            vault = self._vaults.stacks_own()
            missing = (
                "A loopback address means the stack's own vault, and the local cloud has none or several. Name the "
                f"vault in the Host header: <vault>.{suffix}."
            )
        else:
            vault, missing = None, f"{host!r} names no vault: <vault>.{suffix} is expected."
        if vault is None:
            raise refusal("VaultNotFound", problem=missing)
        return replace(vault, suffix=suffix)

    def _caller(self, request: Request) -> Caller:
        accepted = audiences(cloud_of(request.scope)).vault
        authority = authority_of(request.scope, self._cloud.authority_host)
        challenge = f'Bearer authorization="{authority}{self._cloud.tenant_id}", resource="{accepted[0]}"'
        token = bearer(request)
        if token is None:
            raise errors.unauthorized("AKV10000: Request is missing a Bearer or PoP token.", challenge)
        try:
            return self._cloud.tokens.verify(token, accepted)
        except InvalidTokenError as invalid:
            raise errors.unauthorized(f"Error validating token: {invalid.reason}", challenge) from None

    def require(self, call: VaultCall, *actions: str) -> None:
        """Refuse a caller to whom no role grants one of these data actions on the item or the vault; raises 403."""
        kind = call.request.url.path.split("/")[1].removeprefix("deleted")
        scope = f"{call.vault.id}/{kind}/{call.name}" if call.name else call.vault.id
        named = [f"Microsoft.KeyVault/vaults/{action}" for action in actions]
        allowed = self._cloud.authorization.allowed
        if not any(allowed(call.caller.object_id, action, scope, data=True) for action in named):
            raise refusal("Forbidden", caller=call.caller, action=named[0], resource=scope.lower(), vault=call.vault)


def _page(call: VaultCall, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Items from where the last page ended, as many as `maxresults` asks for, with the link to those after them.

    Source: parameter `maxresults` of the lists in `keyvault/data-plane/.../7.4/secrets.json` (1 to 25, 25 by default).
    """
    query = call.request.query_params
    size, begin = query.get("maxresults", str(_PAGE_SIZE)), query.get("$skiptoken", "0")
    if not (size.isdecimal() and 1 <= int(size) <= _PAGE_SIZE):
        raise errors.bad_parameter(f"maxresults must be between 1 and {_PAGE_SIZE}")
    if not begin.isdecimal():
        raise errors.bad_parameter("$skiptoken is invalid")
    end = int(begin) + int(size)
    link = call.request.url.include_query_params(**{"$skiptoken": str(end)})
    if (link.hostname or "").endswith(f".{call.vault.suffix}"):
        link = link.replace(port=443)  # the vault's own address, written out as in the examples of the reference
    return {"value": items[int(begin) : end], "nextLink": str(link) if end < len(items) else None}


def _check_version(version: str) -> None:
    if not version:
        raise errors.bad_parameter("api-version must be specified")
    if not _VERSION.fullmatch(version):
        raise errors.bad_parameter(
            f"The specified version ({version}) is not recognized. Consider using the latest supported version (7.6)."
        )


Item: TypeAlias = SecretVersion | KeyVersion | CertificateVersion


def item_id(vault: KeyVault, kind: str, item: Item, *, versioned: bool = True) -> str:
    """`https://<vault>.vault.azure.net/<kind>/<name>[/<version>]`; `kind`: secrets, keys or certificates."""
    unversioned = f"{vault.uri}/{kind}/{item.name}"
    return f"{unversioned}/{item.version}" if versioned else unversioned


def secret_item(vault: KeyVault, secret: SecretVersion, *, versioned: bool = True) -> dict[str, Any]:
    """A version without its value."""
    dates = {"nbf": secret.nbf, "exp": secret.exp, "created": secret.created, "updated": secret.updated}
    return _without_none(
        {
            "id": item_id(vault, "secrets", secret, versioned=versioned),
            "contentType": secret.content_type,
            "attributes": {"enabled": secret.enabled, **_without_none(dates), **_recovery(vault)},
            "tags": secret.tags,
            "managed": secret.managed or None,
        }
    )


def secret_bundle(vault: KeyVault, secret: SecretVersion, value: str) -> dict[str, Any]:
    """A version with its value in clear."""
    kid = {"kid": item_id(vault, "keys", secret)} if secret.managed else {}
    return {"value": value, **secret_item(vault, secret), **kid}


def deleted_secret(vault: KeyVault, deleted: DeletedSecret, *, versioned: bool = True) -> dict[str, Any]:
    return {**secret_item(vault, deleted.secret.current, versioned=versioned), **_deletion(vault, "secrets", deleted)}


def key_item(vault: KeyVault, key: KeyVersion, *, versioned: bool = True) -> dict[str, Any]:
    """A key without its public half."""
    dates = {"nbf": key.nbf, "exp": key.exp, "created": key.created, "updated": key.created}
    return _without_none(
        {
            "kid": item_id(vault, "keys", key, versioned=versioned),
            "attributes": {"enabled": key.enabled, **_without_none(dates), **_recovery(vault)},
            "tags": key.tags,
            "managed": key.managed or None,
        }
    )


def key_bundle(vault: KeyVault, key: KeyVersion, public_numbers: dict[str, str]) -> dict[str, Any]:
    """A key's public half as a JSON Web Key."""
    jwk = {"kid": item_id(vault, "keys", key), "kty": "RSA", "key_ops": list(key.operations), **public_numbers}
    beside = {name: value for name, value in key_item(vault, key).items() if name != "kid"}
    return {"key": jwk, **beside}


def rotation_policy(vault: KeyVault, key: KeyVersion) -> dict[str, Any]:
    """The default rotation policy of a key."""
    return documents.document(
        __file__, "rotation policy", id=item_id(vault, "keys", key, versioned=False), created=key.created
    )


def certificate_item(vault: KeyVault, certificate: CertificateVersion, *, versioned: bool = True) -> dict[str, Any]:
    """A certificate without its content."""
    x509_certificate = certificate.certificate
    attributes = {
        "enabled": certificate.enabled,
        "nbf": int(x509_certificate.not_valid_before_utc.timestamp()),
        "exp": int(x509_certificate.not_valid_after_utc.timestamp()),
        "created": certificate.created,
        "updated": certificate.created,
    }
    return {
        "id": item_id(vault, "certificates", certificate, versioned=versioned),
        "x5t": base64url(bytes.fromhex(thumbprint(x509_certificate))),
        "subject": x509_certificate.subject.rfc4514_string(),
        "attributes": {**attributes, **_recovery(vault)},
        **({"tags": certificate.tags} if certificate.tags else {}),
    }


def certificate_bundle(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    """A certificate, its policy, and the ids of its key and secret."""
    return {
        **certificate_item(vault, certificate),
        "kid": item_id(vault, "keys", certificate),
        "sid": item_id(vault, "secrets", certificate),
        "cer": certificate.cer,
        "policy": certificate_policy(vault, certificate),
        "pending": {"id": f"{item_id(vault, 'certificates', certificate, versioned=False)}/pending"},
    }


def certificate_policy(vault: KeyVault, certificate: CertificateVersion) -> dict[str, Any]:
    return {**certificate.policy, "id": f"{item_id(vault, 'certificates', certificate, versioned=False)}/policy"}


def certificate_operation(
    vault: KeyVault, certificate: CertificateVersion, status: str = "completed"
) -> dict[str, Any]:
    """The operation that created a certificate (CertificateOperation)."""
    name = item_id(vault, "certificates", certificate, versioned=False)
    operation = documents.document(__file__, "operation", id=name, status=status, version=certificate.version)
    return {**operation, **({"target": name} if status == "completed" else {})}


def deleted_certificate(vault: KeyVault, deleted: DeletedCertificate) -> dict[str, Any]:
    return {**certificate_bundle(vault, deleted[0]), **_deletion(vault, "certificates", deleted[1])}


def deleted_certificate_item(vault: KeyVault, deleted: DeletedCertificate) -> dict[str, Any]:
    """The same without content and policy."""
    return {**certificate_item(vault, deleted[0], versioned=False), **_deletion(vault, "certificates", deleted[1])}


def _deletion(vault: KeyVault, kind: str, deleted: DeletedSecret) -> dict[str, Any]:
    return {
        "recoveryId": f"{vault.uri}/deleted{kind}/{deleted.secret.name}",
        "deletedDate": int(deleted.deleted_at.timestamp()),
        "scheduledPurgeDate": int((deleted.deleted_at + vault.retention).timestamp()),
    }


def _recovery(vault: KeyVault) -> dict[str, Any]:
    return {"recoveryLevel": vault.recovery_level, "recoverableDays": vault.retention.days}


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
