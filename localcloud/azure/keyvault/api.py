"""Key Vault's data plane: secrets, RSA keys and certificates, for the clients of Microsoft's SDKs and the CSI provider.

The vault is named by the Host header; a loopback Host means the stack's own vault. Network rules of a vault are stored
by ARM and not enforced here: every caller is on this machine. Access policies are not emulated, ARM refuses such a
vault. Source: Key Vault REST 7.4 and the paths that azure-keyvault-secrets and -keys use. Left out: backup,
deleting keys, their attributes and tags.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localcloud.azure.keyvault import errors, present
from localcloud.azure.keyvault.certificates import Certificates
from localcloud.azure.keyvault.errors import VaultError
from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import SecretChange, Secrets
from localcloud.azure.keyvault.throttle import VaultThrottle, kind_of
from localcloud.azure.keyvault.vaults import KeyVault, Vaults
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.asked_cloud import authority_of, cloud_of
from localcloud.azure.shared.http import bearer, json_object, service_app
from localcloud.azure.tenant.resources import audiences
from localcloud.azure.tenant.tokens import Caller, InvalidToken
from localcloud.core.store import Document

_PAGE_SIZE: Final = 25
_METHODS: Final = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
# Of an asymmetric key, whoever may read the public half can use it: `keys/read` opens these two as well (text of the
# operations in Azure's own list, AzAdvertizer role page 12338af0, 2024-09-19).
_PUBLIC_OPERATIONS: Final = {"encrypt": "encrypt", "wrapkey": "wrap"}
_PRIVATE_OPERATIONS: Final = {"decrypt": "decrypt", "unwrapkey": "unwrap"}


def app(cloud: LocalAzure) -> Starlette:
    """The data plane of every vault of the local cloud, to be served over TLS."""
    plane = _DataPlane(cloud)
    certificates = _CertificatePlane(plane)
    secrets, keys = "/secrets/{name}", "/keys/{name}"
    routes = [
        plane.route("GET", "/secrets", plane.list_secrets),
        plane.route("GET", f"{secrets}/versions", plane.list_secret_versions),
        plane.route("GET", secrets, plane.get_secret),
        plane.route("GET", secrets + "/{version:path}", plane.get_secret),
        plane.route("PUT", secrets, plane.set_secret),
        plane.route("PATCH", secrets, plane.update_secret),
        plane.route("PATCH", secrets + "/{version:path}", plane.update_secret),
        plane.route("DELETE", secrets, plane.delete_secret),
        plane.route("GET", "/deletedsecrets", plane.list_deleted_secrets),
        plane.route("GET", "/deletedsecrets/{name}", plane.get_deleted_secret),
        plane.route("POST", "/deletedsecrets/{name}/recover", plane.recover_secret),
        plane.route("DELETE", "/deletedsecrets/{name}", plane.purge_secret),
        plane.route("GET", "/keys", plane.list_keys),
        plane.route("GET", f"{keys}/versions", plane.list_key_versions),
        plane.route("GET", keys, plane.get_key),
        plane.route("GET", keys + "/{version:path}", plane.get_key),
        plane.route("POST", f"{keys}/create", plane.create_key),
        plane.route("POST", keys + "/{operation}", plane.use_key),
        plane.route("POST", keys + "/{version:path}/{operation}", plane.use_key),
        plane.route("GET", "/certificates", certificates.list),
        plane.route("POST", "/certificates/{name}/create", certificates.create),
        plane.route("POST", "/certificates/{name}/import", certificates.import_),
        plane.route("GET", "/certificates/{name}/pending", certificates.pending),
        plane.route("GET", "/certificates/{name}", certificates.get),
        plane.route("GET", "/certificates/{name}/{version:path}", certificates.get),
        plane.route("DELETE", "/certificates/{name}", certificates.delete),
        plane.route("GET", "/deletedcertificates/{name}", certificates.get_deleted),
        plane.route("POST", "/deletedcertificates/{name}/recover", certificates.recover),
        plane.route("DELETE", "/deletedcertificates/{name}", certificates.purge),
        Route("/{path:path}", _not_emulated, methods=_METHODS),
    ]
    return service_app("keyvault", routes, faults=cloud.faults, holder=cloud.holder, render=errors.render)


@dataclass(frozen=True)
class _Visit:
    """A request whose vault and caller are known."""

    request: Request
    vault: KeyVault
    caller: Caller

    def part(self, name: str) -> str:
        """A part of the path, "" when it is not there."""
        return str(self.request.path_params.get(name, "")).strip("/")


_Handler = Callable[[_Visit], Awaitable[Response]]


class _DataPlane:
    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud
        self.store = cloud.store
        self._vaults = Vaults(Resources(cloud.store))
        self._secrets = Secrets(cloud.store)
        self._keys = Keys(cloud.store)
        self._throttle = VaultThrottle(cloud.faults.vault_requests)

    def route(self, method: str, path: str, handler: _Handler) -> Route:
        """A route behind the door: vault, bearer, limits, api-version, in the service's own order."""
        kind = kind_of(method, path)

        async def admitted(request: Request) -> Response:
            vault = self._vault(request)
            caller = self._caller(request)
            self._throttle.take(vault, kind)
            if not request.query_params.get("api-version"):
                raise errors.bad_parameter("api-version must be specified")
            changes = method != "GET" and handler != self.use_key
            if changes and self._cloud.holder.now().is_read_only(vault.name):
                raise errors.read_only(vault.name)
            return await handler(_Visit(request, vault, caller))

        return Route(path, admitted, methods=[method])

    async def list_secrets(self, visit: _Visit) -> Response:
        self.require(visit, "secrets/readMetadata/action")
        found = self._secrets.all(visit.vault)
        return _page(visit, [present.secret_item(visit.vault, each.current, versioned=False) for each in found])

    async def list_secret_versions(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/readMetadata/action", f"secrets/{name}")
        secret = self._secrets.find(visit.vault, name)
        # In the order of their random names: seen in Azure/azure-sdk-for-python 35923 ("not chronological").
        versions = sorted(secret.versions, key=lambda each: each.version) if secret else []
        return _page(visit, [present.secret_item(visit.vault, each, versioned=True) for each in versions])

    async def get_secret(self, visit: _Visit) -> Response:
        name, version = visit.part("name"), visit.part("version")
        self.require(visit, "secrets/getSecret/action", f"secrets/{name}")
        secret = self._secrets.find(visit.vault, name)
        found = secret.at(version) if secret else None
        if found is None:
            raise errors.not_found("secret", f"{name}/{version}" if version else name)
        if not found.enabled:
            raise errors.secret_disabled()
        return JSONResponse(present.secret_bundle(visit.vault, found, self._secrets.value(found)))

    async def set_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/setSecret/action", f"secrets/{name}")
        body = await _body(visit, "value contentType attributes tags")
        set_ = self._secrets.set(visit.vault, name, body.get("value"), _change(body))
        return JSONResponse(present.secret_bundle(visit.vault, set_, self._secrets.value(set_)))

    async def update_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/update/action", f"secrets/{name}")
        body = await _body(visit, "contentType attributes tags")
        updated = self._secrets.update(visit.vault, name, visit.part("version"), _change(body))
        return JSONResponse(present.secret_item(visit.vault, updated, versioned=True))

    async def delete_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/delete", f"secrets/{name}")
        deleted = self._secrets.delete(visit.vault, name)
        return JSONResponse(present.deleted_secret(visit.vault, deleted, versioned=True))

    async def list_deleted_secrets(self, visit: _Visit) -> Response:
        self.require(visit, "secrets/readMetadata/action")
        found = self._secrets.all_deleted(visit.vault)
        return _page(visit, [present.deleted_secret(visit.vault, each, versioned=False) for each in found])

    async def get_deleted_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/readMetadata/action", f"secrets/{name}")
        deleted = self._secrets.find_deleted(visit.vault, name)
        if deleted is None:
            raise errors.not_found("secret", name)
        return JSONResponse(present.deleted_secret(visit.vault, deleted, versioned=True))

    async def recover_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/recover/action", f"secrets/{name}")
        recovered = self._secrets.recover(visit.vault, name)
        return JSONResponse(present.secret_item(visit.vault, recovered.current, versioned=True))

    async def purge_secret(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "secrets/purge/action", f"secrets/{name}")
        self._secrets.purge(visit.vault, name)
        return Response(status_code=204)

    async def list_keys(self, visit: _Visit) -> Response:
        self.require(visit, "keys/read")
        found = self._keys.all(visit.vault)
        return _page(visit, [present.key_item(visit.vault, each, versioned=False) for each in found])

    async def list_key_versions(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "keys/read", f"keys/{name}")
        versions = self._keys.versions(visit.vault, name)
        return _page(visit, [present.key_item(visit.vault, each, versioned=True) for each in versions])

    async def get_key(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "keys/read", f"keys/{name}")
        key = self._keys.find(visit.vault, name, visit.part("version"))
        return JSONResponse(present.key_bundle(visit.vault, key, self._keys.public_numbers(key)))

    async def create_key(self, visit: _Visit) -> Response:
        name = visit.part("name")
        self.require(visit, "keys/create/action", f"keys/{name}")
        body = await _body(visit, "kty key_size key_ops attributes tags release_policy crv public_exponent")
        created = self._keys.create(visit.vault, name, body.get("kty"), body.get("key_size"))
        return JSONResponse(present.key_bundle(visit.vault, created, self._keys.public_numbers(created)))

    async def use_key(self, visit: _Visit) -> Response:
        name, operation = visit.part("name"), visit.part("operation")
        if operation in _PUBLIC_OPERATIONS:
            granting = [f"keys/{_PUBLIC_OPERATIONS[operation]}/action", "keys/read"]
            use = self._keys.encrypt
        elif operation in _PRIVATE_OPERATIONS:
            granting = [f"keys/{_PRIVATE_OPERATIONS[operation]}/action"]
            use = self._keys.decrypt
        else:
            return await _not_emulated(visit.request)
        self.require(visit, granting[0], f"keys/{name}", or_else=granting[1:])
        body = await _body(visit, "alg value")
        key = self._keys.find(visit.vault, name, visit.part("version"))
        result = use(key, body.get("alg"), body.get("value"))
        return JSONResponse({"kid": present.key_id(visit.vault, key), "value": result})

    def _vault(self, request: Request) -> KeyVault:
        host, suffix = request.url.hostname or "", cloud_of(request.scope).vault_suffix
        if host.endswith(f".{suffix}"):
            name = host.removesuffix(f".{suffix}")
            vault = self._vaults.named(name)
            missing = f"There is no vault {name!r} in the local cloud."
        elif host == "localhost" or _is_loopback(host):
            vault = self._vaults.stacks_own()
            missing = (
                "A loopback address means the stack's own vault, and the local cloud has none or several. Name the "
                f"vault in the Host header: <vault>.{suffix}."
            )
        else:
            vault, missing = None, f"{host!r} names no vault: <vault>.{suffix} is expected."
        if vault is None:
            raise VaultError(404, "VaultNotFound", missing)
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
        except InvalidToken as refusal:
            raise errors.unauthorized(f"Error validating token: {refusal.reason}", challenge) from None

    def require(self, visit: _Visit, action: str, item: str | None = None, or_else: list[str] | None = None) -> None:
        """Refuse a caller to whom no role grants one of the data actions; raises 403."""
        scope = f"{visit.vault.id}/{item}" if item else visit.vault.id
        namespace = "Microsoft.KeyVault/vaults/"
        allowed = self._cloud.authorization.allowed
        if not any(
            allowed(visit.caller.object_id, namespace + each, scope, data=True) for each in (action, *(or_else or ()))
        ):
            raise errors.forbidden_by_rbac(
                visit.caller, namespace + action, scope, visit.vault.name, visit.vault.location
            )


class _CertificatePlane:
    """The operations on certificates."""

    def __init__(self, plane: _DataPlane) -> None:
        self._plane = plane
        self._certificates = Certificates(plane.store)

    async def list(self, visit: _Visit) -> Response:
        self._plane.require(visit, "certificates/read")
        found = self._certificates.all(visit.vault)
        return _page(visit, [present.certificate_item(visit.vault, each, versioned=False) for each in found])

    async def get(self, visit: _Visit) -> Response:
        name = self._admitted(visit, "read")
        found = self._certificates.find(visit.vault, name, visit.part("version"))
        return JSONResponse(present.certificate_bundle(visit.vault, found))

    async def create(self, visit: _Visit) -> Response:
        name = self._admitted(visit, "create/action")
        body = await _body(visit, "policy attributes tags")
        made = self._certificates.create(visit.vault, name, body.get("policy"))
        return JSONResponse(present.certificate_operation(visit.vault, made, "inProgress"), status_code=202)

    async def pending(self, visit: _Visit) -> Response:
        name = self._admitted(visit, "read")
        found = self._certificates.find(visit.vault, name)
        return JSONResponse(present.certificate_operation(visit.vault, found, "completed"))

    async def import_(self, visit: _Visit) -> Response:
        name = self._admitted(visit, "import/action")
        body = await _body(visit, "value pwd policy attributes tags")
        made = self._certificates.import_(visit.vault, name, body.get("value"), body.get("pwd"), body.get("policy"))
        return JSONResponse(present.certificate_bundle(visit.vault, made))

    async def delete(self, visit: _Visit) -> Response:
        found, deleted = self._certificates.delete(visit.vault, self._admitted(visit, "delete"))
        return JSONResponse(present.deleted_certificate(visit.vault, found, deleted))

    async def get_deleted(self, visit: _Visit) -> Response:
        found, deleted = self._certificates.find_deleted(visit.vault, self._admitted(visit, "read"))
        return JSONResponse(present.deleted_certificate(visit.vault, found, deleted))

    async def recover(self, visit: _Visit) -> Response:
        found = self._certificates.recover(visit.vault, self._admitted(visit, "recover/action"))
        return JSONResponse(present.certificate_bundle(visit.vault, found))

    async def purge(self, visit: _Visit) -> Response:
        self._certificates.purge(visit.vault, self._admitted(visit, "purge/action"))
        return Response(status_code=204)

    def _admitted(self, visit: _Visit, operation: str) -> str:
        """The certificate's name, after the check that the caller may do this."""
        name = visit.part("name")
        self._plane.require(visit, f"certificates/{operation}", f"certificates/{name}")
        return name


async def _body(visit: _Visit, members: str) -> Document:
    body = await json_object(visit.request)
    # Clients send back what answers carry; the service reads past it (`id`, `kid`, `managed`).
    if unknown := sorted(set(body) - set(members.split()) - {"id", "kid", "managed"}):
        raise errors.bad_parameter(f"Unrecognized property '{unknown[0]}' in the request body.")
    return body


def _change(body: Document) -> SecretChange:
    return SecretChange.of(body.get("attributes"), body.get("contentType"), body.get("tags"))


def _page(visit: _Visit, items: list[dict[str, Any]]) -> Response:
    """Items from where the last page ended, as many as `maxresults` asks for, with the link to those after them.

    Source: parameter `maxresults` of the lists in `keyvault/data-plane/.../7.4/secrets.json` (1 to 25, 25 by default).
    """
    query = visit.request.query_params
    size, begin = query.get("maxresults", str(_PAGE_SIZE)), query.get("$skiptoken", "0")
    if not (size.isdecimal() and 1 <= int(size) <= _PAGE_SIZE):
        raise errors.bad_parameter(f"maxresults must be between 1 and {_PAGE_SIZE}")
    if not begin.isdecimal():
        raise errors.bad_parameter("$skiptoken is invalid")
    end = int(begin) + int(size)
    link = visit.request.url.include_query_params(**{"$skiptoken": str(end)})
    if (link.hostname or "").endswith(f".{visit.vault.suffix}"):
        link = link.replace(port=443)  # the vault's own address, written out as in the examples of the reference
    return JSONResponse({"value": items[int(begin) : end], "nextLink": str(link) if end < len(items) else None})


async def _not_emulated(request: Request) -> Response:
    raise errors.not_emulated(f"{request.method} {request.url.path}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
