"""`RenewalSchedule`: which of an identity's two certificate slots is current, and which is issued anew when.

Check looks at the clock and writes its decision into the inputs, so a preview shows a renewal as a changed property
and the generations of both slots are known before anything is created. The rule is `identity/credentials/schedule.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from identity.credentials import rfc3339, schedule
from identity.credentials.schedule import Slot, SlotName, Slots
from plugin import Checked, Created, Diff, Props, diff_properties, unwrap
from provider import clock
from provider.state_only import Inputs, StateOnly

_NONE_YET: Final = "none yet"
_MODES: Final = ("auto", "hold")
_SLOTS: Final = get_args(SlotName)


class RenewalSchedule(StateOnly):
    """Inputs of a program: `lifetimeDays`, `renewBeforeDays`, `mode`.

    Inputs after Check, and outputs: `lifetimeDays`, `renewBeforeDays`, `current` (`a` or `b`), `a` and `b`
    (`generation`, `notBefore`, `validDays`), `renewal` (the newest one, told until the next).
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first ones."""
        inputs = Inputs(new)
        lifetime = inputs.whole_number("lifetimeDays", least=2)
        renew_before = inputs.whole_number("renewBeforeDays", least=1)
        if lifetime is not None and renew_before is not None and renew_before >= lifetime:
            inputs.refuse("renewBeforeDays", "less than lifetimeDays")
        if new.get("mode") not in _MODES:
            inputs.refuse("mode", " or ".join(_MODES))
        if inputs.failures or lifetime is None or renew_before is None:
            return Checked(new, inputs.failures)
        settings = {"lifetimeDays": lifetime, "renewBeforeDays": renew_before}
        if old is None:
            return Checked(settings | _first_issue(lifetime))
        return Checked(settings | _kept_or_renewed(unwrap(old), lifetime, renew_before, hold=new["mode"] == "hold"))

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """The outputs are the inputs, in a preview as well."""
        return Created("" if preview else urn.rsplit("::", 1)[-1], inputs)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """The outputs are the inputs, in a preview as well."""
        return new_inputs


def _first_issue(lifetime: int) -> Props:
    slots = schedule.initial(clock.now())
    return {
        "current": slots.current,
        **{name: _written(slots.slot(name), lifetime) for name in _SLOTS},
        "renewal": _NONE_YET,
    }


def _kept_or_renewed(old: Mapping[str, Any], lifetime: int, renew_before: int, *, hold: bool) -> Props:
    kept = {name: old[name] for name in ("current", *_SLOTS, "renewal")}
    now = clock.now()
    slots = Slots(old["current"], *(_read(old[name]) for name in _SLOTS))
    # The current certificate lives as long as it was issued for, whatever the settings say now. At least a day lies
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


def _written(slot: Slot, lifetime: int) -> Props:
    return {
        "generation": slot.generation,
        "notBefore": rfc3339.render(slot.not_before),
        "validDays": lifetime,
    }


def _read(written: Mapping[str, Any]) -> Slot:
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]))
