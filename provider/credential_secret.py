"""`CredentialSecret`: a credential document in a Key Vault secret, written from a key that no input or output has."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from identity.azure.records import SecretMetadata
from identity.credentials import rfc3339
from identity.credentials.document import InvalidCredentialError, StoredBefore, encode, validate, wrap
from identity.credentials.schedule import Delivery
from identity.credentials.secret_tags import (
    CANNOT_RENEW_AFTER,
    DELIVERED_AT,
    GENERATION,
    OWN_TAGS,
    OWNER,
    RENEW_AFTER,
    THUMBPRINT,
)
from identity.naming import parse_arm_id
from identity.plugin_schema import (
    CheckedCredentialSecret,
    CredentialSecretInputs,
    CredentialSecretOutputs,
)
from plugin import PluginError, Props, ReadResult, unwrap
from provider import keys
from provider.cloud import azure_time
from provider.resource import Inputs, TypedResource, marked, plugin_errors, rotation
from provider.vault_secrets import OWNER_ID, TAKEN_OVER, VaultSecret, inputs_of_import, kept_owner, refuse_foreign

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
CONTENT_TYPE: Final = "application/json"
_DATES: Final = ("notBefore", "notAfter", "renewAfter", "cannotRenewAfter")
# They identify the credential. As long as they stay the same, what was written with it stays, too.
_CREDENTIAL: Final = ("thumbprint", "notBefore")
_DOCUMENT: Final = ("authorityHost", "clientId", "objectId", "objectEncoding")
_AS_WRITTEN: Final = (*_DOCUMENT, "renewAfter")


class CredentialSecretResource(TypedResource[CheckedCredentialSecret, CredentialSecretOutputs[str]]):
    """Another name or vault is another secret; every other change is a new version, or new metadata.

    Check adds the input `enabled`, because a person may disable the secret in the vault.
    """

    inputs = CredentialSecretInputs
    outputs = CredentialSecretOutputs
    # `provenAt` orders the secret after its gate; another path of a document is not another credential.
    uncompared = frozenset({"provenAt", "file"})
    replacing = frozenset({"vaultId", "secretName"})

    def optional(self, old: Props | None, new: Props) -> Set[str]:
        """After an import the engine checks what was read, and ARM does not show everything."""
        return frozenset() if old is None else CredentialSecretInputs.__annotations__.keys() - old.keys()

    def require(self, inputs: CheckedCredentialSecret, report: Inputs) -> None:
        """The generation names a slot."""
        generation = inputs.get("generation")
        if isinstance(generation, str) and Delivery.named(generation, _BEGINNING) is None:
            report.refuse("generation", "slot and number, such as a2")

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: CheckedCredentialSecret) -> Props:
        """Keep what was written with the credential in the vault; enable the secret again if it was disabled."""
        decided: Props = {**kept_owner(old, inputs), "enabled": True}
        if old is None or "file" in inputs or any(old.get(name) != decided.get(name) for name in _CREDENTIAL):
            return decided
        return decided | {name: old[name] for name in _AS_WRITTEN if name in old}

    def make(self, urn: str, inputs: CheckedCredentialSecret) -> tuple[str, CredentialSecretOutputs[str]]:
        """Write the first version, or take over the secret that an earlier write of this credential left there."""
        secret = VaultSecret.of(inputs)
        with plugin_errors("the secret was not written"):
            current = secret.metadata()
            refuse_foreign(urn, current, inputs)
            if current is not None:
                if not _holds(current, inputs):
                    raise PluginError(f"cannot create already existing resource '{current.id}'")
                TAKEN_OVER.add(current.version)
            return secret.id, _outputs(self._delivered(secret, inputs, current))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """What ARM shows of it; an import reads `<cloud>/<tenant id><ARM id>`."""
        inputs = inputs or inputs_of_import(id)
        with plugin_errors("the secret cannot be read"):
            current = VaultSecret.of(unwrap(inputs)).metadata()
        if current is None:
            return None
        # A version has the value that it was written with, whatever became of its tags.
        own = inputs if current.version == state.get("version") else {}
        live = _live(inputs, current) | {name: own[name] for name in (THUMBPRINT, GENERATION) if name in own}
        if state.get("version") not in (None, current.version):
            live["interrupted"] = True
        return ReadResult(current.id, live, {**live, **_outputs(current)})

    def keeps_outputs(self, old: CheckedCredentialSecret, new: CheckedCredentialSecret) -> bool:
        """Another credential is a new version."""
        content = (*_CREDENTIAL, *_DOCUMENT, *(_DATES if "file" in new else ()))
        before: Mapping[str, Any] = old
        after: Mapping[str, Any] = new
        return all(before.get(name) == after.get(name) for name in content)

    def amend(
        self,
        urn: str,
        old: CheckedCredentialSecret,
        outputs: CredentialSecretOutputs[str],
        new: CheckedCredentialSecret,
    ) -> CredentialSecretOutputs[str]:
        """A new version for another credential; else the current version's metadata alone."""
        secret = VaultSecret.of(new)
        with plugin_errors("the secret was not written"):
            current = secret.metadata()
            refuse_foreign(urn, current, new, old)
            if not self.keeps_outputs(old, new) or current is None:
                return _outputs(self._delivered(secret, new, current))
            version = outputs.get("version")
            if current.version != version and not _holds(current, new):
                raise PluginError(_not_ours(urn, current, new, version))
            amended = self._amended(secret, new, current)
            if old.get("interrupted"):
                _disable(secret, amended, current)
            return _outputs(amended)

    def remove(self, urn: str, id: str, inputs: CheckedCredentialSecret, outputs: CredentialSecretOutputs[str]) -> None:
        """Soft-delete the secret."""
        with plugin_errors("the secret was not deleted"):
            VaultSecret.of(inputs).delete(outputs.get("version"))

    def _delivered(
        self, secret: VaultSecret, inputs: CheckedCredentialSecret, current: SecretMetadata | None
    ) -> SecretMetadata:
        """The version with the inputs' credential, written unless an interrupted run has done that."""
        if current is not None and _holds(current, inputs) and "file" not in inputs:
            written = self._amended(secret, inputs, current)
        else:
            if current is not None and "file" in inputs:
                _require_later(secret, inputs, current)
            now = rfc3339.render(azure_time(inputs["cloud"]))
            written = secret.write(_properties(inputs) | {"value": _value(inputs)}, _tags(inputs, now))
        keys.forget(inputs["thumbprint"])
        if current is not None:
            _disable(secret, written, current)
        return written

    def _amended(self, secret: VaultSecret, inputs: CheckedCredentialSecret, current: SecretMetadata) -> SecretMetadata:
        tags = _tags(inputs, current.tags.get(DELIVERED_AT) or rfc3339.render(current.created))
        return secret.amend(_properties(inputs), tags)


def _disable(secret: VaultSecret, written: SecretMetadata, before: SecretMetadata) -> None:
    """Leave two versions enabled; if this fails, the next run finds the credential in the vault and tries again."""
    with plugin_errors(
        "the secret was written, but earlier versions of it are still enabled, with the keys of earlier certificates",
        ". Let the deployer list and update secrets in the vault (role Key Vault Secrets Officer) and reach it over "
        "the network, then run the command again",
    ):
        secret.disable_all_but(written.version, before.version)


def _not_ours(urn: str, current: SecretMetadata, inputs: CheckedCredentialSecret, version: str | None) -> str:
    """Why the tags of a version stay: they would say that it holds the stack's certificate."""
    fix = (
        f"Make the stack's version current again, value and tags, or run {rotation(urn, '--force')}: it writes another "
        "certificate, and names the pods that may not sign in until they load it"
        if "file" not in inputs
        else f"If theirs is newer, put it into {inputs['file']}; otherwise have a later one issued, and put that there"
    )
    return (
        f"{current.id} has the version {current.version}, which somebody else wrote, and not {version}, which "
        f"this stack wrote with the certificate {inputs['thumbprint']}. Nothing was changed. {fix}"
    )


def _require_later(secret: VaultSecret, inputs: CheckedCredentialSecret, current: SecretMetadata) -> None:
    """Raises PluginError for a document from a file that is older than the one in the vault."""
    before = StoredBefore(parse_arm_id(secret.vault_id).name, secret.name, current.thumbprint, current.not_before)
    if why := before.why_it_stays(inputs["thumbprint"], rfc3339.parse(inputs["notBefore"])):
        raise PluginError(f"the document in {inputs['file']} was not written: {why}. You can {before.ways_out}")


def _value(inputs: CheckedCredentialSecret) -> str:
    """The document as the secret stores it."""
    if "file" in inputs:
        return _value_of_file(inputs)
    issued = keys.find(inputs["thumbprint"])
    if issued is None:
        raise PluginError(
            f"the key of the certificate {inputs['thumbprint']} is gone: it was never written to the vault. "
            "Run the command again, which issues another certificate"
        )
    return encode(
        authentication_endpoint=inputs["authorityHost"],
        client_id=inputs["clientId"],
        tenant_id=inputs["tenantId"],
        certificate_pem=issued.certificate_pem,
        private_key_pem=issued.private_key_pem,
        not_before=rfc3339.parse(inputs["notBefore"]),
        not_after=rfc3339.parse(inputs["notAfter"]),
        renew_after=rfc3339.parse(inputs["renewAfter"]),
        cannot_renew_after=rfc3339.parse(inputs["cannotRenewAfter"]),
        object_id=inputs["objectId"],
        object_encoding=inputs["objectEncoding"],
    )


def _value_of_file(known: CheckedCredentialSecret) -> str:
    path = Path(known["file"])
    try:
        text = wrap(path.read_text(encoding="utf-8"), known["objectEncoding"])
        credential = validate(
            text,
            now=rfc3339.utc_now(),
            expected_tenant=known["tenantId"],
            expected_client_id=known["clientId"],
            object_encoding=known["objectEncoding"],
        )
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"{path} cannot be read ({type(error).__name__}); put the document there again") from None
    except InvalidCredentialError as error:
        raise PluginError(f"{path}: {error}") from None
    if credential.thumbprint != known["thumbprint"]:
        raise PluginError(f"{path} changed while the stack was deployed; run the command again")
    return text


def _properties(inputs: CheckedCredentialSecret) -> dict[str, Any]:
    """The secret's properties without its value; the dates are Unix seconds."""
    nbf, exp = (int(rfc3339.parse(date).timestamp()) for date in (inputs["notBefore"], inputs["notAfter"]))
    return {"contentType": CONTENT_TYPE, "attributes": {"enabled": True, "nbf": nbf, "exp": exp}}


def _tags(inputs: CheckedCredentialSecret, delivered_at: str) -> dict[str, str]:
    own = {
        THUMBPRINT: inputs["thumbprint"],
        GENERATION: inputs.get("generation"),
        DELIVERED_AT: delivered_at,
        RENEW_AFTER: inputs["renewAfter"],
        CANNOT_RENEW_AFTER: inputs["cannotRenewAfter"],
        OWNER: inputs.get("ownerId"),
    }
    return {**inputs.get("tags", {}), **{name: value for name, value in own.items() if value is not None}}


def _holds(current: SecretMetadata, inputs: CheckedCredentialSecret) -> bool:
    """Whether the vault has this credential already, from an interrupted run."""
    return current.tags.get(THUMBPRINT) == inputs["thumbprint"] and current.tags.get(GENERATION) == inputs.get(
        "generation"
    )


def _live(inputs: Props, current: SecretMetadata) -> Props:
    """The inputs with which the program would get what the vault has."""
    tags = {name: value for name, value in current.tags.items() if name not in OWN_TAGS}
    dates = {
        "notBefore": None if current.not_before is None else rfc3339.render(current.not_before),
        "notAfter": None if current.expires is None else rfc3339.render(current.expires),
        "renewAfter": current.tags.get(RENEW_AFTER),
        "cannotRenewAfter": current.tags.get(CANNOT_RENEW_AFTER),
    }
    own = {"thumbprint": current.tags.get(THUMBPRINT), "generation": current.tags.get(GENERATION)}
    known = {name: value for name, value in {**dates, **own}.items() if value is not None}
    kept = {name: value for name, value in inputs.items() if name not in (*dates, *own)}
    if OWNER not in current.tags:
        kept.pop(OWNER_ID, None)
    return marked(kept | known | {"tags": tags, "enabled": current.enabled})


def _outputs(current: SecretMetadata) -> CredentialSecretOutputs[str]:
    delivered_at = current.tags.get(DELIVERED_AT) or rfc3339.render(current.created)
    return {"version": current.version, "secretUri": current.uri, "deliveredAt": delivered_at}
