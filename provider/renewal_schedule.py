"""`RenewalScheduleResource`: which of an identity's two certificate slots is current, and which is issued next.

Check looks at the vault and the clock and writes its decision into the inputs, so a preview shows a renewal as a
changed property, and the generations of both slots are known before anything is created. A Reader sees what the
deployer sees. The rule is `identity/credentials/schedule.py`; a person may ask for a renewal before its time
(`identity/credentials/renewal_request.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.azure.registered_certificates import begins_of_ours, withdraw_all, withdraw_all_but
from identity.credentials import renewal_request, rfc3339, schedule
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    SLOTS,
    Decision,
    Delivery,
    ObservedSecret,
    RenewalRefusedError,
    Slot,
    Slots,
    Terms,
)
from identity.credentials.secret_tags import DELIVERED_AT, GENERATION, THUMBPRINT
from plugin import (
    Checked,
    CheckFailure,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    diff_properties,
    pause,
    unwrap,
)
from provider import clock, cloud, schema
from provider.early_looks import EarlyLooks
from provider.inputs import Inputs
from provider.schedule_refusals import in_words
from provider.state_only import StateOnly
from provider.vault_secrets import SecretSeen, VaultSecret

_MODES: Final = ("auto", "hold")
# Where the secret is.
_ADDRESS: Final = ("vaultId", "secretName")
# What a document in the vault was made of: if one of these changes, it takes another certificate to write another.
_DOCUMENT: Final = (*_ADDRESS, "objectEncoding", "authorityHost")
# Another application is another identity.
_OWNER: Final = "clientId"
_STRINGS: Final = ("cloud", "tenantId", *_DOCUMENT, _OWNER)
# The last delivery that was seen, kept for the day when the vault does not show it. It is no part of the plan.
_DELIVERED: Final = "delivered"
# In its place from a revocation to the next delivery: nothing in the vault signs in.
_NOTHING: Final = {"name": "nothing"}
# Of a slot: what a refresh found.
_WITHDRAWN: Final = "withdrawn"


class RenewalScheduleResource(StateOnly):
    """Inputs of a program: `lifetimeDays`, `renewBeforeDays`, `mode`; `cloud`, `tenantId`, `vaultId`, `secretName`,
    `objectEncoding`, `authorityHost`, `clientId`, of which the document in the vault is made; `delivered` (`a1`): the
    certificate that the last complete run left there, if the stack knows of one.

    Inputs after Check, and outputs: the same, `current` (`a` or `b`), `a` and `b` (`generation`, `notBefore`,
    `validDays`; for a slot without a certificate absent, in outputs empty), `renewal` (the newest one, kept until the
    next). After a refresh a slot is `withdrawn` whose certificate nobody can sign in with.
    """

    def __init__(self, looks: EarlyLooks) -> None:
        self._looks = looks

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first one.

        A renewal that a person asks for comes first, whatever the mode.
        """
        inputs = Inputs(new)
        now = clock.now(new.get("cloud", ""))
        lifetime = inputs.days("lifetimeDays", least=2, since=now)
        renew_before = inputs.integer("renewBeforeDays", least=1)
        if lifetime is not None and renew_before is not None and renew_before >= lifetime:
            inputs.refuse("renewBeforeDays", "less than lifetimeDays")
        if new.get("mode") not in _MODES:
            inputs.refuse("mode", " or ".join(_MODES))
        for name in _STRINGS:
            inputs.string(name)
        if inputs.failures or lifetime is None or renew_before is None:
            return Checked(new, inputs.failures)
        settings = {name: each for name, each in new.items() if name not in ("mode", _DELIVERED)}
        seen = self._look(new)
        vault = _vault(seen.found)
        if old is None:
            clock.require_right(seen.here, seen.date)
            try:
                return Checked(settings | _written(schedule.initial(now, lifetime, vault)))
            except RenewalRefusedError as refusal:
                return Checked(new, [CheckFailure("", in_words(refusal, None, vault, new))])
        known = unwrap(old)
        schema.require(known)
        terms = Terms(
            lifetime_days=lifetime,
            renew_before_days=renew_before,
            secret_name=new["secretName"],
            hold=new["mode"] == "hold",
            is_stale=any(known.get(name) != new[name] for name in _DOCUMENT),
            is_replaced=known.get(_DELIVERED) == _NOTHING,
            request=_request(urn),
        )
        slots = _slots(known)
        try:
            decision = schedule.decide(slots, vault, self._known(known, new), now, terms)
        except RenewalRefusedError as refusal:
            return Checked(new, [CheckFailure("", in_words(refusal, slots, vault, new))])
        if decision.slots != slots:
            clock.require_right(seen.here, seen.date)
        written = _written(decision, known["renewal"])
        if decision.delivered is None and (terms.is_replaced or terms.request is RenewalRequest.REPLACE):
            written[_DELIVERED] = _NOTHING
        return Checked(settings | written)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place, but another application starts again."""
        old, new = (_without_delivery(each) for each in (old_inputs, new_inputs))
        changes = diff_properties(old, new)
        return Diff({path: PropertyChange(each.kind, replace=path == _OWNER) for path, each in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """The outputs are the inputs, in a preview as well."""
        return Created("" if preview else _name(urn), _outputs(inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """The state, in which a slot is withdrawn whose certificate is neither registered at Entra ID nor in the vault.

        Its removal was meant to last, after a leak for instance: no later run registers it again. So is one
        that has ended, which Entra ID would not register.
        """
        found = super().read(urn, id, inputs, state)
        if found is None or not (known := unwrap(inputs)):
            return found
        try:
            azure = cloud.client(known["cloud"], known["tenantId"])
            begins = begins_of_ours(azure, f"/applications(appId='{known[_OWNER]}')")
        except AccessError as error:
            raise PluginError(f"which certificates are registered at Entra ID cannot be seen: {error}") from None
        if begins is None:
            return found
        slots, now = _slots(known), clock.now(known["cloud"])
        shown = slots.shown_by(_vault(self._look(known).found))
        in_vault = None if shown is None else shown.slot
        read: Props = {}
        for name in SLOTS:
            if (slot := slots.slot(name)) is not None:
                may_return = name == in_vault and not slot.has_ended(now)
                read[name] = _slot(replace(slot, is_withdrawn=slot.not_before not in begins and not may_return))
        return ReadResult(id, found.inputs | read, found.state | read)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """The outputs are the inputs, in a preview as well.

        After a leak certificates leave Entra ID here: all of them, or all but what the vault has. So no state names the
        new slots while an old one is still registered, no later run registers it again, and one that a restored state
        does not know of goes as well.
        """
        if not preview and (request := _request(urn)) is not None:
            self._withdraw(request, new_inputs)
        return _outputs(new_inputs)

    def _withdraw(self, request: RenewalRequest, inputs: Mapping[str, Any]) -> None:
        application = f"/applications(appId='{inputs[_OWNER]}')"
        try:
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            if request is RenewalRequest.REPLACE:
                withdraw_all(azure, application, pause)
            found = self._look(inputs).found if request is RenewalRequest.WITHDRAW else None
            if found is not None:
                begins = rfc3339.parse(inputs[inputs["current"]]["notBefore"])
                withdraw_all_but(azure, application, found.tags.get(THUMBPRINT), begins, pause)
        except AccessError as error:
            raise PluginError(
                f"the leaked certificate may still be registered: {error}. Run the command again"
            ) from None

    def _look(self, inputs: Mapping[str, Any]) -> SecretSeen:
        """The secret at an address."""
        try:
            return self._looks.look(inputs)
        except AccessError as error:
            secret = VaultSecret.of(inputs).id
            raise PluginError(
                f"the vault decides which certificate is renewed, and {secret} cannot be read: {error}. "
                "Let the identity that runs this read it (role Reader), then try again"
            ) from None

    def _known(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Delivery | None:
        """The newest delivery that the vault showed before, here or at the last address, or that the stack knows."""
        found = list(self._remembered(old, new))
        return max(found, key=lambda each: each.generation, default=None)

    def _remembered(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Delivery]:
        if any(old.get(name) != new[name] for name in _ADDRESS):
            before = self._look({**new, **{name: old[name] for name in _ADDRESS}})
            if before.found is not None and (delivery := _delivery(before.found)):
                yield delivery
        record = old.get(_DELIVERED)
        if record and record != _NOTHING and (delivery := Delivery.named(record["name"], rfc3339.parse(record["at"]))):
            yield delivery
        # The last complete run does not say when; not before the certificate began.
        name = new.get(_DELIVERED)
        if isinstance(name, str) and (begun := _begun(old, name)) and (delivery := Delivery.named(name, begun)):
            yield delivery


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _request(urn: str) -> RenewalRequest | None:
    try:
        return renewal_request.read(_name(urn), os.environ)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _vault(found: SecretMetadata | None) -> ObservedSecret:
    if found is None:
        return ObservedSecret()
    return ObservedSecret(True, _delivery(found), found.not_before, found.created)


def _delivery(found: SecretMetadata) -> Delivery | None:
    # Anybody who may write secrets may edit a tag, and nobody the time at which a version was created.
    at = found.created
    with suppress(ValueError):
        at = min(at, rfc3339.parse(found.tags.get(DELIVERED_AT, "")))
    return Delivery.named(found.tags.get(GENERATION, ""), at)


def _begun(old: Mapping[str, Any], name: str) -> datetime | None:
    slot = old.get(name[:1])
    return rfc3339.parse(slot["notBefore"]) if slot else None


def _written(decision: Decision, before: str = "") -> Props:
    slots, delivered = decision.slots, decision.delivered
    record = {} if delivered is None else {_DELIVERED: {"name": delivered.name, "at": rfc3339.render(delivered.at)}}
    written: Props = {name: _slot(slot) for name in SLOTS if (slot := slots.slot(name)) is not None}
    return schema.marked({"current": slots.current, **written, "renewal": decision.why or before, **record})


def _slot(slot: Slot) -> Props:
    return {
        "generation": slot.generation,
        "notBefore": rfc3339.render(slot.not_before),
        "validDays": slot.valid_days,
    } | ({_WITHDRAWN: True} if slot.is_withdrawn else {})


def _slots(old: Mapping[str, Any]) -> Slots:
    return Slots(old["current"], *(_read(old.get(name)) for name in SLOTS))


def _read(written: Mapping[str, Any] | None) -> Slot | None:
    if written is None:
        return None
    begin, days = rfc3339.parse(written["notBefore"]), written["validDays"]
    return Slot(written["generation"], begin, days, written.get(_WITHDRAWN, False))


def _outputs(inputs: Props) -> Props:
    """A slot without a certificate is empty: an output that is missing in a preview is unknown to the program."""
    return {name: {} for name in SLOTS} | _without_delivery(inputs)


def _without_delivery(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name != _DELIVERED}
