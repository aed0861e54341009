"""What must fit together: configurations in `cases/`, and what each is refused for.

A case changes a configuration with nothing wrong: the path of a key, where a dot at the beginning stands for
`hostedClusters[0]`, has another value. `clusters` are hosted clusters instead of the one. `refused` has the rule of
each problem by its place, in the order of the report; without it the configuration is accepted. The report `says` each
text that is listed, as often as it is listed. `tests/unit/cases.py` fills in what stands in angle brackets.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.unit.identity.settings.world import LOCAL, configuration, hosted_cluster, read, refusals, report, steps

_FILES: Final = ("access", "authentication", "hosted-clusters", "infrastructure", "parts", "stack")
Place = tuple[str, str]


def _cases(*files: str) -> list[Any]:
    sentences = [entry for file in files for entry in read(f"{file}.yaml").items()]
    return [
        pytest.param(case, id=sentence)
        for sentence, cases in sentences
        for case in (cases if isinstance(cases, list) else [cases])
    ]


def _described(case: dict[str, Any]) -> tuple[dict[str, Any], list[Place]]:
    """The configuration of a case, and what it is refused for."""
    changes = {path: value for path, value in case.items() if path not in ("refused", "says", "clusters")}
    if "clusters" in case:
        changes = {"hostedClusters": [hosted_cluster(**cluster) for cluster in case["clusters"]], **changes}
    refused = case.get("refused", {}).items()
    return configuration(**{steps(path): value for path, value in changes.items()}), [
        (f"hostedClusters[0]{place}" if place.startswith(".") else place, rule) for place, rule in refused
    ]


@pytest.mark.parametrize("case", _cases(*_FILES))
def test_a_configuration_is_refused_where_its_case_says(case: dict[str, Any]) -> None:
    config, refused = _described(case)
    says = case.get("says", [])

    assert refusals(config, local=LOCAL) == refused
    written = report(config) if says else ""
    assert all(written.count(text) >= says.count(text) for text in says)


@pytest.mark.parametrize("case", _cases("placeholders"))
def test_what_only_an_example_has_is_refused_in_a_stacks_own_file(case: dict[str, Any]) -> None:
    config, refused = _described(case)

    assert refusals(config, local=LOCAL, written=config) == refused


@pytest.mark.parametrize("field", [row.field for row in CONTROL_PLANE if not row.optional])
def test_an_identity_that_the_api_requires_is_not_switched_off(field: str) -> None:
    assert refusals(configuration(hostedClusters__0__identities={field: {"enabled": False}})) == [
        (f"hostedClusters[0].identities.{field}.enabled", "identity-required")
    ]


def test_a_private_link_takes_fifty_subscriptions() -> None:
    def private(count: int) -> list[tuple[str, str]]:
        allowed = [f"{at:08}-0000-4000-8000-000000000000" for at in range(1, count + 1)]
        link = {"type": "PrivateLink", "privateLink": {"additionalAllowedSubscriptions": allowed}}
        return refusals(configuration(hostedClusters__0__topology="Private", hostedClusters__0__private=link))

    place = "hostedClusters[0].private.privateLink.additionalAllowedSubscriptions"
    assert [private(count) for count in (50, 51)] == [[], [(place, "private-link-subscriptions")]]
