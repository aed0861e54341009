"""Refuses placeholders: domains and networks of documentation, and the names of this project's samples.

All-zero ids and key versions are refused by their own types. The local cloud uses domains of documentation itself, so
its stacks may name them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from identity.clouds import LOCAL_CLOUD, Cloud
from identity.settings.schema.problems import Place
from identity.settings.schema.schema_node import PLACEHOLDER, ReportedPlace, SchemaNode

# RFC 5737 and RFC 3849.
_NETWORKS: Final = tuple(
    ipaddress.ip_network(prefix) for prefix in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)
# RFC 2606, section 3.
_DOMAIN: Final = re.compile(r"(?:^|[./@])example\.(?:com|net|org)(?=$|[:/])", re.IGNORECASE)
# The samples' names begin with this prefix (`ops/first_stack/template.py`); a storage account's name has no hyphen.
SAMPLE_PREFIX: Final = "example"
_SAMPLE: Final = re.compile(
    rf"(?:^|[-/]){SAMPLE_PREFIX}(?:$|[-/])|(?:^|[/=]){SAMPLE_PREFIX}(?:dev|stage|prod)[a-z0-9]*"
)
# Free texts, which name nothing.
_FREE: Final = frozenset({"tag-name", "tag-value", "non-empty", "file-path", "document-path"})


def refuse_placeholders(
    raw: Mapping[str, Any], filled: Collection[Place], schema: SchemaNode, root: ReportedPlace
) -> None:
    """Report every placeholder in the configuration of a stack on Azure, except in `filled` places."""
    cloud = raw.get("cloud")
    if isinstance(cloud, Cloud) and cloud.name == LOCAL_CLOUD:
        return
    refused = {problem.place for problem in root.problems}
    for place, node, value in _texts(raw, schema, ()):
        if place in filled or place in refused or not _is_placeholder(value):
            continue
        spec, at = node.spec, root.at(place)
        assert spec is not None
        fix = at.to_set(spec.blank) + (f"; {spec.hint}" if spec.hint else "")
        at.refuse_value(value, rule="placeholder", accepted=spec.accepted, fix=fix, reason=PLACEHOLDER)


def _texts(value: Any, node: SchemaNode | None, place: Place) -> Iterator[tuple[Place, SchemaNode, str]]:
    """Every text with a rule, and its place."""
    if node is None:
        return
    if isinstance(value, str):
        if node.spec is not None and node.spec.rule not in _FREE:
            yield place, node, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, node.step(key), (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, node.step(index), (*place, index))


def _is_placeholder(text: str) -> bool:
    if _DOMAIN.search(text) or _SAMPLE.search(text):
        return True
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return any(network.version == example.version and network.overlaps(example) for example in _NETWORKS)
