"""A stack from nothing to nothing, and what it leaves behind: no private key and no token, nowhere."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.engine.killing import small_stack
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

# What Azure itself keeps of deleted things: soft-deleted applications and vaults, and names of role assignments.
_KEPT = {
    "arm-role-assignment-name",
    "entra-deleted",
    "keyvault-deleted",
    "keyvault-name",
    "keyvault-secret",
}
# Made with the first token, which on kube-apiserver the start waits for.
_SIGNING_KEY = "entra-signing-key"
_JWT = re.compile(rb"eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{16,}")


@dataclass
class LifecycleScenario:
    """One stack from `up` to `destroy`: the cloud before and after, the vault's private keys, and all that was printed.

    `in_state` are the private keys in the decrypted state.
    """

    stack: LocalStack
    before: set[tuple[str, str]]
    up: set[tuple[str, str]]
    after: set[tuple[str, str]]
    keys: set[str]
    in_state: set[str]
    mounted: set[bytes]
    printed: str


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LifecycleScenario]:
    with small_stack(tmp_path_factory.mktemp("scenario"), "stack") as stack:
        before = stack.inventory()
        printed = [stack.pulumi("preview", "--diff").stdout]
        printed.append(stack.up("--json").stdout)
        up = stack.inventory()
        exported = json.loads(stack.pulumi("stack", "export", "--show-secrets").stdout)
        in_state = {key for resource in exported["deployment"]["resources"] for key in _private_keys(resource)}
        keys = set(_private_keys(OutOfBand(stack).credentials()))
        mounts = Path(stack.environment.mounts_dir)
        mounted = {each.read_bytes() for each in mounts.glob("clusters-hc1/*/mnt/certs/*-json")}
        printed.append(stack.pulumi("preview", "--diff", "--show-sames", "--json").stdout)
        printed.append(stack.pulumi("refresh", "--yes", "--skip-preview", "--json").stdout)
        printed.append(stack.pulumi("stack", "export").stdout)
        printed.append(stack.pulumi("destroy", "--yes", "--skip-preview", "--json").stdout)
        yield LifecycleScenario(stack, before, up, stack.inventory(), keys, in_state, mounted, "".join(printed))


def test_up_adds_and_takes_nothing_away(scenario: LifecycleScenario) -> None:
    assert scenario.before < scenario.up


def test_destroy_leaves_what_was_there_before_and_what_azure_keeps(scenario: LifecycleScenario) -> None:
    assert scenario.before <= scenario.after
    assert {kind for kind, _ in scenario.after - scenario.before} - {_SIGNING_KEY} == _KEPT
    assert {key for kind, key in scenario.after if kind == "kubernetes"} == {
        key for kind, key in scenario.before if kind == "kubernetes"
    }


def test_each_identity_has_one_key_in_the_vault_and_none_in_the_state(scenario: LifecycleScenario) -> None:
    assert len(scenario.keys) == 3, "two applications, and the managed identity that stands in for the others"
    assert scenario.in_state == set()


def test_no_private_key_is_left_in_clear(scenario: LifecycleScenario) -> None:
    forms = _forms(scenario.keys)

    assert [place for place, content in _everything(scenario) if any(form in content for form in forms)] == []


def test_the_search_finds_a_key_where_one_belongs(scenario: LifecycleScenario) -> None:
    forms = _forms(scenario.keys)

    assert len(scenario.mounted) == len(scenario.keys), "a document of each"
    assert all(any(form in content for form in forms) for content in scenario.mounted)


def test_no_file_has_the_look_of_a_private_key(scenario: LifecycleScenario) -> None:
    found = {Path(place).name for place, content in _everything(scenario) if b"PRIVATE KEY-----" in content}

    assert found == {"server.pem", "expired-server.pem"}, "the TLS key of the local cloud's own endpoints"


def test_no_token_is_left_in_clear(scenario: LifecycleScenario) -> None:
    assert [place for place, content in _everything(scenario) if _JWT.search(content)] == []


def _everything(scenario: LifecycleScenario) -> Iterator[tuple[str, bytes]]:
    """Everything that was printed and every file, but for the tmpfs where keys belong: pods' mounts, the deployer's."""
    yield "standard output", scenario.printed.encode()
    for file in scenario.stack.state.rglob("*"):
        if file.is_file() and not file.is_relative_to(scenario.stack.state / "run"):
            yield str(file), file.read_bytes()


def _private_keys(value: Any) -> Iterator[str]:
    """Each PEM private key in `value`, also inside base64 and JSON."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _private_keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from _private_keys(each)
    elif isinstance(value, str):
        if value.startswith(("{", '"')):
            yield from _private_keys(json.loads(value))
        elif match := re.search(r"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----", value, re.DOTALL):
            yield match[0]
        elif len(value) > 1000 and re.fullmatch(r"[A-Za-z0-9+/=\n]+", value):
            yield from _private_keys(base64.b64decode(value).decode("latin-1"))


def _forms(keys: Iterable[str]) -> set[bytes]:
    """What only these keys have: a line of each, the line in base64 once more at every offset, its bytes in hex."""
    forms = set()
    for key in keys:
        line = key.splitlines()[len(key.splitlines()) // 2].encode()
        encoded = {base64.b64encode(bytes(offset) + line)[4:-4] for offset in range(3)}
        forms |= {line, *encoded, base64.b64decode(line).hex().encode()}
    return forms
