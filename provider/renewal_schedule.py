"""`RenewalScheduleResource`: which of an identity's two certificate slots is current, and which is issued anew when.

Check looks at the clock and writes its decision into the inputs, so a preview shows a renewal as a changed property
and the generations of both slots are known before anything is created. The rule is `identity/credentials/schedule.py`;
a person may ask for a renewal before its time (`identity/credentials/renewal_request.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, get_args

from identity.credentials import renewal_request, rfc3339, schedule
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import Renewal, Slot, SlotName, Slots
from plugin import Checked, CheckFailure, Created, Diff, PluginError, Props, diff_properties, unwrap
from provider import clock
from provider.state_only import Inputs, StateOnly

_NONE_YET: Final = "none yet"
_MODES: Final = ("auto", "hold")
_SLOTS: Final = get_args(SlotName)


class RenewalScheduleResource(StateOnly):
    """Inputs of a program: `lifetimeDays`, `renewBeforeDays`, `mode`.

    Inputs after Check, and outputs: `lifetimeDays`, `renewBeforeDays`, `current` (`a` or `b`), `a` and `b`
    (`generation`, `notBefore`, `validDays`), `renewal` (the newest one, kept until the next).
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first ones.

        A renewal that a person asks for comes first, whatever the mode.
        """
        inputs = Inputs(new)
        now = clock.now()
        lifetime = inputs.days("lifetimeDays", least=2, since=now)
        renew_before = inputs.integer("renewBeforeDays", least=1)
        if lifetime is not None and renew_before is not None and renew_before >= lifetime:
            inputs.refuse("renewBeforeDays", "less than lifetimeDays")
        if new.get("mode") not in _MODES:
            inputs.refuse("mode", " or ".join(_MODES))
        if inputs.failures or lifetime is None or renew_before is None:
            return Checked(new, inputs.failures)
        settings = {"lifetimeDays": lifetime, "renewBeforeDays": renew_before}
        if old is None:
            return Checked(settings | _first_issue(now, lifetime))
        try:
            request = renewal_request.read(_name(urn), os.environ)
        except ValueError as error:
            raise PluginError(str(error)) from None
        slots = _slots(unwrap(old))
        if request is RenewalRequest.RENEW and now < (free := schedule.spare_is_free(slots)):
            return Checked(new, [CheckFailure("", _too_soon(slots, free))])
        if request is not None:
            return Checked(settings | _as_requested(unwrap(old), slots, request, now, lifetime))
        hold = new["mode"] == "hold"
        return Checked(settings | _kept_or_renewed(unwrap(old), slots, now, lifetime, renew_before, hold=hold))

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """The outputs are the inputs, in a preview as well."""
        return Created("" if preview else _name(urn), inputs)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """The outputs are the inputs, in a preview as well."""
        return new_inputs


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _first_issue(now: datetime, lifetime: int) -> Props:
    slots = schedule.initial(now)
    return {
        "current": slots.current,
        **{name: _written(slots.slot(name), lifetime) for name in _SLOTS},
        "renewal": _NONE_YET,
    }


def _kept_or_renewed(
    old: Mapping[str, Any], slots: Slots, now: datetime, lifetime: int, renew_before: int, *, hold: bool
) -> Props:
    kept = _kept(old)
    # The current certificate lives as long as it was issued for, whatever the settings are now. At least a day lies
    # between two renewals: until then pods may still use the previous certificate.
    age = max(old[slots.current]["validDays"] - renew_before, 1)
    renewal = None if hold else schedule.due(slots, now, age + renew_before, renew_before)
    if renewal is None:
        return kept
    renewed = schedule.renewed(slots, renewal, now)
    return kept | {
        "current": renewed.current,
        renewal.slot: _written(renewed.slot(renewal.slot), lifetime),
        "renewal": f"slot {renewal.slot}, due since {rfc3339.render(renewal.due_since)}",
    }


def _as_requested(old: Mapping[str, Any], slots: Slots, request: RenewalRequest, now: datetime, lifetime: int) -> Props:
    spare = slots.spare
    if request is RenewalRequest.FRESH_SPARE:
        changed, what = schedule.with_fresh_spare(slots), "issued anew as the spare"
    else:
        changed, what = schedule.renewed(slots, Renewal(spare, now), now), "asked for"
    return _kept(old) | {
        "current": changed.current,
        spare: _written(changed.slot(spare), lifetime),
        "renewal": f"slot {spare}, {what} at {rfc3339.render(now)}",
    }


def _too_soon(slots: Slots, free: datetime) -> str:
    return (
        f"a renewal now would replace the certificate of slot {slots.spare}, with which pods may still sign in until "
        f"{rfc3339.render(free)}: they load a new one when the CSI driver has polled and at the latest 6 hours later. "
        "Wait until then, or run `idstack rotate --force`, which names those pods"
    )


def _kept(old: Mapping[str, Any]) -> dict[str, Any]:
    return {name: old[name] for name in ("current", *_SLOTS, "renewal")}


def _slots(old: Mapping[str, Any]) -> Slots:
    return Slots(old["current"], *(_read(old[name]) for name in _SLOTS))


def _written(slot: Slot, lifetime: int) -> Props:
    return {
        "generation": slot.generation,
        "notBefore": rfc3339.render(slot.not_before),
        "validDays": lifetime,
    }


def _read(written: Mapping[str, Any]) -> Slot:
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]))
