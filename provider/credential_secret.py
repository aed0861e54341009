"""`CredentialSecret`: a credential document in a Key Vault secret, written from a key that no input or output has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.credentials import rfc3339
from identity.credentials.document import InvalidCredentialError, encode, validate, wrap
from identity.credentials.replacement import StoredBefore
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
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    diff_properties,
    unwrap,
)
from provider import clock, keys, schema
from provider.inputs import Inputs
from provider.ownership import OWNER_ID, kept_owner, refuse_foreign
from provider.vault_secrets import VaultSecret, inputs_of_import

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
CONTENT_TYPE: Final = "application/json"

_PLACE: Final = ("cloud", "tenantId", "vaultId", "secretName")
_DATES: Final = ("notBefore", "notAfter", "renewAfter", "cannotRenewAfter")
# Which credential it is. For as long as these stay, what was written with it stays, too.
_CREDENTIAL: Final = ("thumbprint", "notBefore")
_DOCUMENT: Final = ("authorityHost", "clientId", "objectId", "objectEncoding")
_AS_WRITTEN: Final = (*_DOCUMENT, "renewAfter")
# It orders the secret after its gate, and says nothing about the secret.
_ORDER: Final = "provenAt"
# Where the document of a managed identity lies. Another path is no other credential.
_FILE: Final = "file"
_UNCOMPARED: Final = frozenset({_ORDER, _FILE})
_OUTPUTS: Final = ("version", "secretUri", "deliveredAt")
# Only a refresh has it among the inputs, so the next update finishes what a run that was cut short has begun.
_INTERRUPTED: Final = "interrupted"


class CredentialSecretResource(Resource):
    """Inputs: `cloud`, `tenantId`; `vaultId` (ARM id), `secretName`, `objectEncoding`, `tags`; of the credential
    `thumbprint` (SHA-1, upper-case hexadecimal), `generation` (`a2`), `authorityHost`, `clientId`, `objectId`,
    `notBefore`, `notAfter`, `renewAfter`, `cannotRenewAfter` (RFC 3339); `provenAt` of its gate; or `file` with a
    document, from the project's folder, instead of the last one and of `generation`; `ownerId` of the stack.

    Outputs also: `version`, `secretUri`, `deliveredAt` (RFC 3339), and `enabled`, which a person may change; after a
    refresh `interrupted`, if somebody wrote a version that the state does not have: earlier ones may still be enabled.
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and keep what was written with the credential that the vault has."""
        inputs = Inputs(new)
        for name in (*_PLACE, "objectEncoding", "thumbprint", "clientId", *_DATES):
            # An import has the engine check what was read, and ARM does not show everything.
            if old is None or name in old or name in new:
                inputs.string(name)
        generation = new.get(GENERATION)
        if isinstance(generation, str) and Delivery.named(generation, _BEGINNING) is None:
            inputs.refuse(GENERATION, "slot and number, such as a2")
        if old is not None:
            schema.require(old)
        new = schema.marked(kept_owner(old, new) | {"enabled": True})
        is_issued = _FILE not in new
        if old is not None and is_issued and all(name in old and old[name] == new.get(name) for name in _CREDENTIAL):
            new |= {name: old[name] for name in _AS_WRITTEN if name in old}
        return Checked(new, inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Another name or vault is another secret; everything else is a new version, or new metadata."""
        old, new = (_comparable(each) for each in (old_inputs, new_inputs))
        changes = diff_properties(old, new)
        moved = {"vaultId", "secretName"}
        return Diff({path: PropertyChange(each.kind, replace=path in moved) for path, each in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Write the first version. A secret that this credential's own, earlier write left there is taken over."""
        if preview:
            return Created("", _planned(inputs))
        secret = VaultSecret.of(inputs)
        try:
            found = secret.metadata()
            refuse_foreign(urn, found, inputs)
            if found is not None and not _holds(found, inputs):
                raise PluginError(f"cannot create already existing resource '{found.id}'")
            return Created(secret.id, _state(inputs, self._delivered(secret, inputs, found)))
        except AccessError as error:
            raise PluginError(f"the secret was not written: {error}") from None

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """What ARM shows of it; an import reads `<cloud>/<tenant id><ARM id>`."""
        inputs = inputs or inputs_of_import(id)
        try:
            found = VaultSecret.of(inputs).metadata()
        except AccessError as error:
            raise PluginError(f"the secret cannot be read: {error}") from None
        if found is None:
            return None
        # A version has the value that it was written with, whatever became of its tags.
        own = inputs if found.version == state.get("version") else {}
        live = _live(inputs, found) | {name: own[name] for name in (THUMBPRINT, GENERATION) if name in own}
        if state.get("version") not in (None, found.version):
            live[_INTERRUPTED] = True
        return ReadResult(found.id, live, _state(live, found))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """A new version for another credential; else the current version's metadata alone."""
        content = (*_CREDENTIAL, *_DOCUMENT, *(_DATES if _FILE in new_inputs else ()))
        is_other = any(old_inputs.get(name) != new_inputs.get(name) for name in content)
        if preview:
            return _planned(new_inputs) if is_other else _planned(new_inputs) | _kept(old_state)
        secret = VaultSecret.of(new_inputs)
        try:
            found = secret.metadata()
            refuse_foreign(urn, found, new_inputs, old_inputs)
            if not is_other and found is not None:
                if found.version != old_state.get("version") and not _holds(found, new_inputs):
                    raise PluginError(_not_ours(found, new_inputs, old_state))
                amended = self._amended(secret, new_inputs, found)
                if _INTERRUPTED in old_inputs:
                    _disable(secret, amended, found)
                return _state(new_inputs, amended)
            return _state(new_inputs, self._delivered(secret, new_inputs, found))
        except AccessError as error:
            raise PluginError(f"the secret was not written: {error}") from None

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete the secret softly, as the vault does; one that is gone stays so."""
        try:
            VaultSecret.of(inputs or state).delete()
        except AccessError as error:
            raise PluginError(f"the secret was not deleted: {error}") from None

    def _delivered(self, secret: VaultSecret, inputs: Props, found: SecretMetadata | None) -> SecretMetadata:
        """The version with the inputs' credential, written unless an interrupted run has done that."""
        if found is not None and _holds(found, inputs) and _FILE not in inputs:
            written = self._amended(secret, inputs, found)
        else:
            if found is not None and _FILE in inputs:
                _require_later(secret, inputs, found)
            now = rfc3339.render(clock.now(inputs["cloud"]))
            written = secret.write(_properties(inputs) | {"value": _value(inputs)}, _tags(inputs, now))
        keys.forget(inputs["thumbprint"])
        if found is not None:
            _disable(secret, written, found)
        return written

    def _amended(self, secret: VaultSecret, inputs: Props, found: SecretMetadata) -> SecretMetadata:
        tags = _tags(inputs, found.tags.get(DELIVERED_AT) or rfc3339.render(found.created))
        return secret.amend(_properties(inputs), tags)


def _disable(secret: VaultSecret, written: SecretMetadata, before: SecretMetadata) -> None:
    """Leave two versions enabled; a run after one that could not finds the credential in the vault and tries again."""
    try:
        secret.disable_all_but(written.version, before.version)
    except AccessError as error:
        raise PluginError(
            f"the secret was written, but earlier versions of it are still enabled, with the keys of earlier "
            f"certificates: {error}. Let the deployer list and update secrets in the vault (role Key Vault Secrets "
            "Officer) and reach it over the network, then run the command again"
        ) from None


def _not_ours(found: SecretMetadata, inputs: Props, state: Props) -> str:
    """Why the tags of a version stay: they would say that it holds the stack's certificate."""
    way = (
        "Make the stack's version current again, value and tags, or run `idstack rotate --force --identity "
        "<identity>`: it writes another certificate, and names the pods that may not sign in until they load it"
        if _FILE not in inputs
        else f"If theirs is newer, put it into {inputs[_FILE]}; otherwise have a later one issued, and put that there"
    )
    return (
        f"{found.id} has the version {found.version}, which somebody else wrote, and not {state.get('version')}, which "
        f"this stack wrote with the certificate {inputs['thumbprint']}. Nothing was changed. {way}"
    )


def _require_later(secret: VaultSecret, inputs: Props, found: SecretMetadata) -> None:
    """Raises PluginError for a document from a file that is older than the one in the vault."""
    before = StoredBefore(parse_arm_id(secret.vault_id).name, secret.name, found.thumbprint, found.not_before)
    if why := before.why_it_stays(inputs["thumbprint"], rfc3339.parse(inputs["notBefore"])):
        raise PluginError(f"the document in {inputs[_FILE]} was not written: {why}. You can {before.ways_out}")


def _value(inputs: Props) -> str:
    """The document as the secret stores it."""
    known = unwrap(inputs)
    if _FILE in known:
        return _value_of_file(known)
    issued = keys.find(known["thumbprint"])
    if issued is None:
        raise PluginError(
            f"the key of the certificate {known['thumbprint']} is gone: it was never written to the vault. "
            "Run the command again, which issues another certificate"
        )
    not_before, not_after, renew_after, cannot_renew_after = (rfc3339.parse(known[name]) for name in _DATES)
    return encode(
        authentication_endpoint=known["authorityHost"],
        client_id=known["clientId"],
        tenant_id=known["tenantId"],
        certificate_pem=issued.certificate_pem,
        private_key_pem=issued.private_key_pem,
        not_before=not_before,
        not_after=not_after,
        renew_after=renew_after,
        cannot_renew_after=cannot_renew_after,
        object_id=known["objectId"],
        object_encoding=known["objectEncoding"],
    )


def _value_of_file(known: Mapping[str, Any]) -> str:
    path = Path(known[_FILE])
    try:
        text = wrap(path.read_text(encoding="utf-8"), known["objectEncoding"])
        found = validate(
            text,
            now=datetime.now(UTC),
            expected_tenant=known["tenantId"],
            expected_client_id=known["clientId"],
            object_encoding=known["objectEncoding"],
        )
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"{path} cannot be read ({type(error).__name__}); put the document there again") from None
    except InvalidCredentialError as error:
        raise PluginError(f"{path}: {error}") from None
    if found.thumbprint != known["thumbprint"]:
        raise PluginError(f"{path} changed while the stack was deployed; run the command again")
    return text


def _properties(inputs: Props) -> dict[str, Any]:
    """The secret's properties without its value; the dates are Unix seconds."""
    nbf, exp = (int(rfc3339.parse(inputs[name]).timestamp()) for name in ("notBefore", "notAfter"))
    return {"contentType": CONTENT_TYPE, "attributes": {"enabled": True, "nbf": nbf, "exp": exp}}


def _tags(inputs: Props, delivered_at: str) -> dict[str, str]:
    own = {
        THUMBPRINT: inputs["thumbprint"],
        GENERATION: inputs.get("generation"),
        DELIVERED_AT: delivered_at,
        RENEW_AFTER: inputs["renewAfter"],
        CANNOT_RENEW_AFTER: inputs["cannotRenewAfter"],
        OWNER: inputs.get(OWNER_ID),
    }
    return {**inputs.get("tags", {}), **{name: value for name, value in own.items() if value is not None}}


def _holds(found: SecretMetadata, inputs: Props) -> bool:
    """Whether the vault has this credential already: a run was cut short after its write."""
    return found.tags.get(THUMBPRINT) == inputs["thumbprint"] and found.tags.get(GENERATION) == inputs.get("generation")


def _comparable(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name not in _UNCOMPARED}


def _live(inputs: Props, found: SecretMetadata) -> Props:
    """The inputs with which the program would get what the vault has."""
    tags = {name: value for name, value in found.tags.items() if name not in OWN_TAGS}
    dates = {
        "notBefore": None if found.not_before is None else rfc3339.render(found.not_before),
        "notAfter": None if found.expires is None else rfc3339.render(found.expires),
        "renewAfter": found.tags.get(RENEW_AFTER),
        "cannotRenewAfter": found.tags.get(CANNOT_RENEW_AFTER),
    }
    own = {"thumbprint": found.tags.get(THUMBPRINT), "generation": found.tags.get(GENERATION)}
    known = {name: value for name, value in {**dates, **own}.items() if value is not None}
    kept = {name: value for name, value in inputs.items() if name not in (*dates, *own)}
    if OWNER not in found.tags:
        kept.pop(OWNER_ID, None)
    return schema.marked(kept | known | {"tags": tags, "enabled": found.enabled})


def _state(inputs: Props, found: SecretMetadata) -> Props:
    delivered_at = found.tags.get(DELIVERED_AT) or rfc3339.render(found.created)
    return inputs | {"version": found.version, "secretUri": found.uri, "deliveredAt": delivered_at}


def _planned(inputs: Props) -> Props:
    return inputs | dict.fromkeys(_OUTPUTS, UNKNOWN)


def _kept(state: Props) -> Props:
    return {name: state[name] for name in _OUTPUTS if name in state}
