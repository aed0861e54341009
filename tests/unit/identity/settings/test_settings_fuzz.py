"""Whatever stands in a configuration: it is accepted or explained, and a name is good exactly when Azure takes it."""

from __future__ import annotations

import copy
import ipaddress
import string
import uuid
from collections.abc import Callable, Collection
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.settings import ConfigurationError, load_settings
from tests.unit.identity.settings.world import MANAGED_IDENTITY, configuration, creation, load, report, with_change

LETTERS: Final = set(string.ascii_letters)
LOWER: Final = set(string.ascii_lowercase + string.digits)
WORD: Final = LETTERS | set(string.digits)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


# What a path, a command line, JSON, YAML or pydantic gives a meaning of its own.
ODD = st.sampled_from(
    (
        *("[key]", "", "a.b", '"', "'", "[", "]", "[0]", "a[0]", "\ud800", "\n", "\0", "__", "0", " ", "-", "é", "$x"),
        *("name", "value", "credential", "credential.value", "file", "identities", "cloud", "create"),
    )
) | st.text(max_size=4)
ODD_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=6,
)
# Something stands in every kind of structure.
WHOLE: Final = configuration(
    tags={"team": "a"},
    credentials__propagation={"successes": 3},
    keyVaultUser={"source": "created", "name": "csi"},
    managementCluster=creation(access={"login": "arm"}),
    hostedClusters__0__hostedCluster={"manifest": {"spec": 1}},
    hostedClusters__0__identities={
        "imageRegistry": {
            "source": "managed-identity",
            "resourceId": MANAGED_IDENTITY,
            "credential": {"file": "ciro.json"},
        }
    },
    hostedClusters__0__workloads=[
        {
            "name": "w",
            "image": "a/b:1",
            "identities": ["kms"],
            "tolerations": [{"key": "a"}],
            "nodeSelector": {"a": "b"},
            "resources": {"requests": {"cpu": "1"}},
        }
    ],
)


def _vault(name: str) -> bool:
    ends = name[:1] in LETTERS and name[-1:] in WORD
    return 3 <= len(name) <= 24 and ends and "--" not in name and set(name) <= WORD | {"-"}


def _secret(name: str) -> bool:
    return 1 <= len(name) <= 127 and set(name) <= WORD | {"-"}


def _label(name: str, longest: int) -> bool:
    ends = name[:1] in LOWER and name[-1:] in LOWER
    return 1 <= len(name) <= longest and ends and set(name) <= LOWER | {"-"}


def _cluster(name: str) -> bool:
    return len(name) <= 54 and all(_label(part, 54) for part in name.split("."))


def _resource_group(name: str) -> bool:
    return 1 <= len(name) <= 90 and not name.endswith(".") and set(name) <= WORD | set("_-().")


def _aks(name: str) -> bool:
    ends = name[:1] in WORD and name[-1:] in WORD
    return 1 <= len(name) <= 63 and ends and set(name) <= WORD | set("-_")


# Path, Azure's or Kubernetes' rule in other words than the settings have, characters that are likely to matter.
NAMES: Final[list[tuple[str, Callable[[str], bool], str]]] = [
    ("vault__name", _vault, "aZ0-_."),
    ("resourceGroup", _resource_group, "aZ0-_.() /"),
    ("managementCluster__name", _aks, "aZ0-_."),
    ("hostedClusters__0__identities__ingress__secretName", _secret, "aZ0-_."),
    ("hostedClusters__0__name", _cluster, "aZ0-."),
    ("hostedClusters__0__infraID", lambda name: _label(name, 253), "aZ0-."),
]


@pytest.mark.parametrize(("path", "is_good", "alphabet"), NAMES, ids=[path for path, _, _ in NAMES])
@given(data=st.data())
def test_a_name_is_accepted_exactly_when_its_rule_holds(
    path: str, is_good: Callable[[str], bool], alphabet: str, data: st.DataObject
) -> None:
    characters = st.sampled_from(alphabet) | st.characters(codec="utf-8", exclude_characters="\0")
    name = data.draw(st.text(st.sampled_from(alphabet), min_size=1, max_size=130) | st.text(characters, min_size=1))
    config = configuration(hostedClusters__0__infraID="infra", hostedClusters__0__namespace="n")

    assert is_accepted(with_change(config, path, name)) is is_good(name)


@given(st.uuids(), st.booleans())
def test_every_uuid_is_accepted_in_either_case(value: uuid.UUID, upper: bool) -> None:
    text = str(value).upper() if upper else str(value)

    if value.int != 0:
        assert load(configuration(tenantId=text)).tenant_id == str(value)


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_a_range_is_accepted_exactly_when_it_is_public_and_aligned(address: int, bits: int) -> None:
    text = f"{ipaddress.IPv4Address(address)}/{bits}"
    network = ipaddress.IPv4Network(text, strict=False)
    private = [ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
    is_good = network.network_address == ipaddress.IPv4Address(address) and not any(map(network.overlaps, private))

    assert is_accepted(configuration(vault={"name": "kv-identity", "allowedIpRanges": [text]})) is is_good


@given(data=st.data())
def test_any_place_may_hold_any_key_without_a_crash(data: st.DataObject) -> None:
    config = copy.deepcopy(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        holder, step = data.draw(st.sampled_from(entries(config)))
        if isinstance(holder[step], dict) and data.draw(st.booleans()):
            holder[step][data.draw(ODD)] = data.draw(ODD_JSON)
        else:
            holder[step] = data.draw(ODD_JSON)

    _accepted_or_explained(config, secret_keys=data.draw(st.sampled_from(((), ("hostedClusters",)))))


@given(st.dictionaries(ODD, ODD_JSON))
def test_any_mapping_may_be_the_configuration_without_a_crash(config: dict[str, Any]) -> None:
    _accepted_or_explained(config)
    _accepted_or_explained(configuration() | config)


@given(st.text())
def test_a_structure_may_be_any_string_without_a_crash(text: str) -> None:
    with pytest.raises(ConfigurationError, match="tenantId"):
        load_settings({"vault": text, "hostedClusters": text}, secret_keys=(), local=None)


@given(JSON)
def test_nothing_of_a_secret_key_is_ever_shown(value: Any) -> None:
    imported = {"source": "managed-identity", "credential": {"secretName": "MARKER_", "file": value}}
    marked = {"name": "MARKER", "anything": ["MARKER", value], "kms": {"activeKey": "MARKER"}, "vnetID": value}
    marked |= {"objectEncoding": "MARKER", "identities": {"imageRegistry": imported}}

    assert "MARKER" not in report(configuration(hostedClusters=[marked]), secret_keys=["hostedClusters"])


def is_accepted(config: dict[str, Any]) -> bool:
    try:
        load(config)
    except ConfigurationError:
        return False
    return True


def entries(value: Any) -> list[tuple[Any, Any]]:
    """Every mapping or list below `value`, with each of its keys or indexes."""
    steps = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, step) for step in steps] + [entry for step in steps for entry in entries(value[step])]


def _accepted_or_explained(config: dict[str, Any], *, secret_keys: Collection[str] = ()) -> None:
    try:
        load(config, secret_keys=secret_keys)
    except ConfigurationError as error:
        for problem in error.problems:
            assert problem.accepted
            assert problem.fix
        str(error).encode("utf-8")
