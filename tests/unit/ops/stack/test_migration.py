"""The state of the release before in this one's schema: a frozen one, and everything that may be odd about one.

`frozen/schema_1.json` is what that release wrote, cut down: `hc1/ingress` was never renewed, slot b of `hc1/disk` was,
`hc1/imageRegistry` is imported. Its ciphertexts are dummies.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials import rfc3339
from identity.credentials.schedule import Delivery, ObservedSecret, Slot, Slots, Terms, decide
from identity.state_schema import UnknownSchema
from ops.stack.migration import migrated
from ops.stack.state import State
from tests.unit.ops.conftest import FakeEngine, Idstack

_FROZEN = Path(__file__).parent / "frozen"
_OLD = json.loads((_FROZEN / "schema_1.json").read_text(encoding="utf-8"))
_OLD_SECRET = "azure-native:keyvault:Secret"
_VAULT = (
    "/subscriptions/10ca1000-0000-4000-8000-000000000002/resourceGroups/identity-local/providers/Microsoft.KeyVault"
    "/vaults/kv-idstack-local"
)


def _old(change: Callable[[list[Any]], None] = lambda resources: None) -> Any:
    state = copy.deepcopy(_OLD)
    change(state["deployment"]["resources"])
    return state


def _migrated(state: Any) -> Any:
    found = migrated(state)
    assert found is not None
    return found


def _named(state: Any, name: str) -> Any:
    [found] = [each for each in state["deployment"]["resources"] if each["urn"].endswith(f"::{name}")]
    return found


def _is_sound(state: Any) -> bool:
    """What the engine asks of an imported state: whatever a resource refers to comes before it."""
    seen: set[str] = set()
    for each in state["deployment"]["resources"]:
        needed = {*each.get("dependencies", ()), each.get("parent", ""), each.get("provider", "").rpartition("::")[0]}
        if not needed - {""} <= seen:
            return False
        seen.add(each["urn"])
    return True


def test_the_frozen_state_is_migrated_as_reviewed() -> None:
    golden = json.loads((_FROZEN / "schema_1_migrated.json").read_text(encoding="utf-8"))
    assert _migrated(_old()) == golden
    assert _is_sound(golden)


def test_a_migrated_state_is_left_alone() -> None:
    assert migrated(_migrated(_old())) is None


def test_a_state_without_the_plugins_resources_is_left_alone() -> None:
    others = [each for each in _old()["deployment"]["resources"] if "idstack" not in each["type"]]
    state: State = {"version": 3, "deployment": {"resources": [e for e in others if e["type"] != _OLD_SECRET]}}
    assert migrated(state) is None
    assert migrated({"version": 3, "deployment": {"resources": None}}) is None
    assert migrated({"version": 3, "deployment": {}}) is None


@pytest.mark.parametrize(("found", "shown"), [(3, 3), (0, 0), ("x", 0), (None, 0)])
def test_a_schema_that_nobody_knows_is_an_error_in_words(found: Any, shown: int) -> None:
    state = _old()
    _named(state, "hc1-ingress-entra-schedule")["inputs"]["schema"] = found
    with pytest.raises(UnknownSchema, match=f"the state has the schema {shown} of this plugin; this release reads 2"):
        migrated(state)


def test_a_spare_that_no_pod_ever_had_leaves_the_schedule() -> None:
    inputs = _named(_migrated(_old()), "hc1-ingress-entra-schedule")["inputs"]
    assert inputs["delivered"] == {"name": "a1", "at": "2026-11-22T14:47:53Z"}
    assert (inputs["current"], inputs["a"]["generation"], inputs.get("b")) == ("a", 1, None)


def test_the_slot_that_the_secret_has_is_the_delivered_one_whatever_is_current() -> None:
    def renewal_failed(resources: list[Any]) -> None:
        [schedule] = [each for each in resources if each["urn"].endswith("hc1-disk-entra-schedule")]
        schedule["inputs"] |= {"current": "a", "a": {**schedule["inputs"]["b"], "generation": 3, "notBefore": _LATER}}

    state = _migrated(_old(renewal_failed))

    inputs = _named(state, "hc1-disk-entra-schedule")["inputs"]
    assert (inputs["current"], inputs["delivered"]) == ("a", {"name": "b2", "at": "2026-11-22T14:48:10Z"})
    assert "b" in inputs
    secret = _named(state, "hc1-disk-credential-secret")["inputs"]
    assert (secret["generation"], secret["thumbprint"]) == ("b2", _named(state, "hc1-disk-entra-certificate-b")["id"])


_LATER = "2026-11-23T14:43:00Z"


def test_without_its_secret_the_outputs_say_what_was_delivered_and_where() -> None:
    def deleted(resources: list[Any]) -> None:
        resources[:] = [each for each in resources if not each["urn"].endswith("hc1-ingress-credential-secret")]

    inputs = _named(_migrated(_old(deleted)), "hc1-ingress-entra-schedule")["inputs"]

    assert inputs["delivered"]["name"] == "a1"
    assert (inputs["vaultId"], inputs["secretName"]) == (_VAULT, "ingress-hc1-json")


def test_a_schedule_whose_secret_was_never_made_begins_anew() -> None:
    def first_run_was_killed(resources: list[Any]) -> None:
        del resources[0]["outputs"]
        after = ("hc1-ingress-credential-secret", "hc1-cluster-side-ingress-class")
        resources[:] = [each for each in resources if not each["urn"].endswith(after)]

    state = _migrated(_old(first_run_was_killed))

    assert "hc1-ingress-entra-schedule" not in json.dumps(state)
    assert _is_sound(state)


def test_a_registration_keeps_its_id_which_its_certificate_names() -> None:
    state = _migrated(_old())
    for name in ("ingress", "disk"):
        for slot in ("a", "b"):
            registration = _named(state, f"hc1-{name}-entra-registration-{slot}")
            assert registration["inputs"]["keyId"] == registration["id"].rpartition("/")[2]
            certificate = _named(state, f"hc1-{name}-entra-certificate-{slot}")
            assert certificate["outputs"]["keyId"] == registration["inputs"]["keyId"]


def test_an_imported_credential_keeps_its_certificate_and_has_no_generation() -> None:
    inputs = _named(_migrated(_old()), "hc1-image-registry-credential-secret")["inputs"]
    assert inputs["thumbprint"] == "9D0F60B56CF54BE693AC106F0534ED46633FEA83"
    assert not {"generation", "objectId", "authorityHost", "provenAt", "file"} & inputs.keys()


def test_a_stack_of_imported_credentials_gets_the_plugins_provider() -> None:
    def imported_alone(resources: list[Any]) -> None:
        resources[:] = [
            each
            for each in resources
            if not any(name in each["urn"] for name in ("ingress", "disk", "providers:idstack", "cluster-gate"))
        ]

    state = _migrated(_old(imported_alone))

    assert _named(state, "hc1-image-registry-credential-secret")["type"] == "idstack:index:CredentialSecret"
    assert _is_sound(state)
    assert migrated(state) is None


def test_what_waits_for_its_deletion_loses_its_keys_and_stays_what_it_is() -> None:
    def replaced(resources: list[Any]) -> None:
        for name in ("hc1-ingress-credential-secret", "hc1-ingress-entra-certificate-a"):
            [one] = [each for each in resources if each["urn"].endswith(name)]
            resources.append({**copy.deepcopy(one), "delete": True})

    *_, secret, certificate = _migrated(_old(replaced))["deployment"]["resources"]

    assert (secret["type"], "value" in secret["inputs"]["properties"]) == (_OLD_SECRET, False)
    assert (certificate["delete"], "privateKeyPem" in json.dumps(certificate)) == (True, False)


def test_pending_operations_on_keys_are_dropped() -> None:
    state = _old()
    pending = [
        {"resource": _named(state, name), "type": "creating"}
        for name in ("hc1-ingress-credential-secret", "hc1-ingress-entra-gate-a", "vault-vault")
    ]
    state["deployment"]["pending_operations"] = pending
    assert _migrated(state)["deployment"]["pending_operations"] == pending[2:]


@given(order=st.randoms(use_true_random=False))
def test_no_key_and_no_value_remains_in_whatever_order_resources_are(order: random.Random) -> None:
    found = _migrated(_old(order.shuffle))

    assert "privateKeyPem" not in json.dumps(found)
    assert _OLD_SECRET not in json.dumps(found)
    for each in found["deployment"]["resources"]:
        if each["type"].startswith("idstack:index:"):
            assert each["inputs"]["schema"] == each["outputs"]["schema"] == 2
            secrets = {
                name for name, value in each["inputs"].items() if isinstance(value, dict) and "ciphertext" in value
            }
            assert secrets <= {"kubeconfig"}


@pytest.mark.parametrize(("name", "hours", "current"), [("ingress", 0.0, "b"), ("disk", 8.0, "b"), ("disk", 9.0, "a")])
def test_the_next_run_issues_into_the_other_slot_once_that_is_free(name: str, hours: float, current: str) -> None:
    inputs = _named(_migrated(_old()), f"hc1-{name}-entra-schedule")["inputs"]
    slots = Slots(inputs["current"], *(_slot(inputs.get(slot)) for slot in ("a", "b")))
    delivered = Delivery.named(inputs["delivered"]["name"], rfc3339.parse(inputs["delivered"]["at"]))
    assert delivered is not None
    now = delivered.at + timedelta(hours=hours)

    terms = Terms(lifetime_days=90, renew_before_days=45, secret_name="ingress-hc1-json")
    vault = ObservedSecret(True, None, slots.issued.not_before, delivered.at)  # it had dates and no tags
    decision = decide(slots, vault, delivered, now, terms)

    assert decision.slots.current == current
    assert (decision.slots == slots) == (current == inputs["current"])


def _slot(written: Any) -> Slot | None:
    return None if written is None else Slot(written["generation"], rfc3339.parse(written["notBefore"]), 90)


def test_a_state_of_a_later_release_stops_the_command_before_the_engine(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has_resources({"urn": "urn:x", "type": "idstack:index:RenewalSchedule", "inputs": {"schema": 3}})

    printed = idstack("up", "--stack", "dev")

    assert printed.code == 1
    assert printed.error == (
        "idstack: the state has the schema 3 of this plugin; this release reads 2: use the release that brought the "
        "stack up last, or a later one\n"
    )
    assert [call for call in engine.calls if call.startswith("up")] == []
