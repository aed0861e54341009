"""The application that deploys to the local cloud, as a pipeline's service principal does in a real tenant."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from cryptography import x509

from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.tenant.directory import Directory
from localcloud.azure.tenant.objects import Application, KeyCredential, ServicePrincipal
from localcloud.core import clock
from localcloud.core.certificates import CLOCK_SKEW, issue
from localcloud.core.files import write_private
from localcloud.core.store import Store

_KIND, _KEY = "deployer", "deployer"
_LIFETIME = timedelta(days=365)
_RENEWED_BEFORE = timedelta(days=30)
# It and its certificate are backdated by this much, so that every replica knows both from the start.
_SINCE = timedelta(days=1)


def ensure_deployer(store: Store, directory: Directory, credential: Path) -> ServicePrincipal:
    """The deployer's service principal; made on the first call, with Graph's `Application.ReadWrite.OwnedBy`.

    Writes key and certificate to `credential` (PEM, 0600), again when it is lost or about to expire; the certificate
    registered before is then removed.
    """
    with store.transaction():
        known = store.get(_KIND, _KEY)
        principal = directory.service_principal(known["objectId"]) if known else None
        if principal is None:
            principal = _create(directory)
            store.put(_KIND, _KEY, {"objectId": principal.object_id})
        application = directory.application_by_app(principal.app_id)
        if application is None:
            raise LookupError(f"no application {principal.app_id}")
        if not _is_good(credential, application):
            _register(directory, application, credential)
    return principal


def _create(directory: Directory) -> ServicePrincipal:
    application = directory.create_application("deployer")
    principal = directory.create_service_principal(application.app_id)
    since = clock.now() - _SINCE
    directory.update(replace(application, created_at=since))
    directory.update(replace(principal, created_at=since))
    directory.grant(principal.object_id, WRITE_OWNED)
    return principal


def _register(directory: Directory, application: Application, credential: Path) -> None:
    issued = issue("deployer", not_before=clock.now() - CLOCK_SKEW, lifetime=_LIFETIME)
    key = KeyCredential.of(issued.certificate, display_name="deployer")
    directory.update(replace(application, keys=(replace(key, added_at=clock.now() - _SINCE),)))
    write_private(credential, issued.pem())


def _is_good(credential: Path, application: Application) -> bool:
    if not credential.exists():
        return False
    key = KeyCredential.of(x509.load_pem_x509_certificate(credential.read_bytes()))
    registered = {each.thumbprint for each in application.key_credentials}
    return key.thumbprint in registered and key.end - _RENEWED_BEFORE > clock.now()
