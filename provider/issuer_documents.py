"""`IssuerDocumentsResource`: the discovery document and the keys of an OIDC issuer in a public blob container.

The deployer writes them with its role Storage Blob Data Contributor, never with the account's key. Anybody can read
them, as Entra ID does. `identity/credentials/signing_key_rotation.py` has the order in which keys change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError, AzureRefusedError
from identity.credentials import rfc3339, signing_key_rotation
from identity.credentials.backoff import Backoff
from identity.credentials.openid_documents import DISCOVERY_PATH, JWKS_PATH, discovery_document, jwks_document
from identity.credentials.signing_key_rotation import Publication, TooEarlyError
from identity.plugin_schema import IssuerDocumentsInputs, IssuerDocumentsOutputs, IssuerDocumentsState
from plugin import PluginError, Props, log_info, pause
from provider import cloud
from provider.cloud import azure_time, require_right
from provider.resource import Inputs, RefusedInputError, TypedResource, plugin_errors

_CONTENT_TYPE: Final = "application/json"
# A role takes effect within ten minutes (azure-docs `role-based-access-control/troubleshooting`), and DNS has to learn
# the name of a new account.
_LONGEST_WAIT: Final = 900.0
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 15.0
_TRANSIENT: Final = frozenset({None, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
# It lets a rotation skip its waiting times; it is not part of the documents.
_LEAKED: Final = "leaked"
_AFTER_A_LEAK: Final = (
    "After a leak, name the key that has leaked in serviceAccountSigningKey.leaked of the hosted cluster: it goes at "
    "once, and pods whose tokens it signed cannot sign in to Azure until the kubelet has renewed them"
)
# REST reference of Microsoft.Resources: the list of subscriptions is empty, and never refused, without a right in any.
_SUBSCRIPTIONS, _SUBSCRIPTIONS_API = "/subscriptions", resource_types.SUBSCRIPTIONS_API


class IssuerDocumentsResource(TypedResource[IssuerDocumentsState, Mapping[str, Any]]):
    """Another address is another issuer; everything else changes in place.

    The container, which is deleted next, takes the documents along.
    """

    inputs = IssuerDocumentsInputs
    dropped = frozenset({_LEAKED})
    replacing = frozenset({"issuer"})
    no_import = (
        "only its stack knows since when a key is published. Remove the import and let the next `up` write the "
        "documents"
    )

    def require(self, inputs: IssuerDocumentsState, report: Inputs) -> None:
        """Every key has a generation."""
        if not report.failures and not _generations(inputs["keys"]):
            report.refuse("keys", "a list of at least one key with generation and jwk")

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: IssuerDocumentsState) -> Props:
        """Note since when each key is published and signs; refuse a step before its time.

        Raises `PluginError` if something changes while this machine's clock differs from Azure's.
        """
        now, generations = azure_time(inputs["cloud"]), _generations(inputs["keys"])
        before = None if old is None else _publication(old)
        try:
            publication = (
                signing_key_rotation.first(generations, inputs["signing"], now)
                if before is None
                else signing_key_rotation.changed(
                    before, generations, inputs["signing"], now, leaked=inputs.get("leaked") or ()
                )
            )
        except TooEarlyError as error:
            raise RefusedInputError("keys", f"{error}. {_AFTER_A_LEAK}") from None
        if publication != before:
            _require_right_clock(inputs)
        return dict(_written(publication))

    def make(self, urn: str, inputs: IssuerDocumentsState) -> tuple[str, Mapping[str, Any]]:
        """Write both documents, and read them as Entra ID does; the id is the issuer's address."""
        _publish(inputs)
        return inputs["issuer"], {}

    def live(self, urn: str, inputs: IssuerDocumentsState) -> Mapping[str, Any] | None:
        """Whether anybody still gets these documents there."""
        documents = _documents(inputs)
        with plugin_errors("the issuer's documents cannot be read"):
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            published = {path: azure.public_document(f"{inputs['issuer']}{path}") for path in documents}
        if not any(published.values()):
            return None
        # The members of a key come in any order from the engine.
        same = all(_parsed(published[path]) == json.loads(content) for path, content in documents.items())
        return {} if same else {"changed": True}

    def amend(
        self, urn: str, old: IssuerDocumentsState, outputs: Mapping[str, Any], new: IssuerDocumentsState
    ) -> Mapping[str, Any]:
        """Write them again."""
        _publish(new)
        return {}


def _generations(keys: Any) -> list[int]:
    if not isinstance(keys, list):
        return []
    generations = [key["generation"] for key in keys if isinstance(key, Mapping) and "generation" in key]
    return generations if len(generations) == len(keys) and all(isinstance(n, int) for n in generations) else []


def _publication(inputs: Mapping[str, Any]) -> Publication:
    since = {int(number): rfc3339.parse(moment) for number, moment in inputs["publishedSince"].items()}
    return Publication(since, inputs["signing"], rfc3339.parse(inputs["signingSince"]))


def _written(publication: Publication) -> IssuerDocumentsOutputs:
    since = {str(number): rfc3339.render(moment) for number, moment in publication.since.items()}
    return {"publishedSince": since, "signingSince": rfc3339.render(publication.signing_since)}


def _require_right_clock(inputs: IssuerDocumentsState) -> None:
    with plugin_errors("this machine's clock could not be compared with Azure's"):
        azure = cloud.client(inputs["cloud"], inputs["tenantId"])
        answer = azure.resource_with_date(_SUBSCRIPTIONS, _SUBSCRIPTIONS_API)
    require_right(rfc3339.utc_now(), answer.date, "no key was published or let sign")


def _parsed(document: bytes | None) -> Any:
    """What a document says, None if it is not JSON or not there."""
    try:
        return None if document is None else json.loads(document)
    except ValueError:
        return None


def _documents(inputs: IssuerDocumentsState) -> dict[str, bytes]:
    """The content of each document by its path below the issuer's address."""
    return {
        DISCOVERY_PATH: discovery_document(inputs["issuer"]),
        JWKS_PATH: jwks_document([key["jwk"] for key in inputs["keys"]]),
    }


def _publish(inputs: IssuerDocumentsState) -> None:
    azure = cloud.client(inputs["cloud"], inputs["tenantId"])
    deadline = time.monotonic() + _LONGEST_WAIT
    for path, content in _documents(inputs).items():
        url = f"{inputs['issuer']}{path}"
        _until(deadline, f"the deployer may write {url}", partial(azure.write_blob, url, content, _CONTENT_TYPE))
        _until(deadline, f"anybody may read {url}", partial(_require_public, azure, url, content))


def _require_public(azure: AzureClient, url: str, content: bytes) -> None:
    if azure.public_document(url) != content:
        raise AzureRefusedError(f"{url} is not what was written there", HTTPStatus.CONFLICT)


def _until(deadline: float, what: str, attempt: Callable[[], None]) -> None:
    """Repeat the attempt while a new role, or a new public container, has no effect yet."""
    backoff, said = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE), False
    while True:
        try:
            return attempt()
        except AzureRefusedError as error:
            if error.status not in _TRANSIENT or time.monotonic() >= deadline:
                raise PluginError(
                    f"the issuer's documents were not published: {error}. The deployer needs the role Storage Blob "
                    "Data Contributor on the storage account, and no policy may forbid its public access"
                ) from None
            if not said:
                said = True
                log_info(f"waiting until {what}")
            pause(backoff.next())
        except AccessError as error:
            raise PluginError(f"the issuer's documents were not published: {error}") from None
