"""A stack from nothing to nothing, and what it leaves behind: no private key and no token, nowhere.

The vault is a private key's only home. A caller that may preview a stack decrypts its states, so what is encrypted in
them, in their history and in their backups is searched like the rest.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ops.stack.state import State, outputs_in_log, outputs_of
from tests.engine.key_material import Key, KeySearch, everything, vault_keys, watched_processes
from tests.engine.reader import reader_of
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

# What Azure itself keeps of deleted things: soft-deleted applications and vaults, and names of role assignments.
_KEPT: Final = {"arm-role-assignment-name", "entra-deleted", "keyvault-deleted", "keyvault-name", "keyvault-secret"}
# Made with the first token, which on kube-apiserver the start waits for.
_SIGNING_KEY: Final = "entra-signing-key"
_JWT: Final = re.compile(rb"eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{16,}")
_BACKEND: Final = ".localcloud/pulumi/backend/.pulumi"


@dataclass(frozen=True)
class LifecycleScenario:
    """One stack from `up` to `destroy`: the cloud before, meanwhile and after, and all that it left behind, by place.

    `keys` are those of the vault, by name; `in_state` are private keys in PEM in the decrypted state. `state` and
    `events` are of the `up`.
    """

    stack: LocalStack
    before: set[tuple[str, str]]
    up: set[tuple[str, str]]
    after: set[tuple[str, str]]
    keys: dict[str, Key]
    in_state: set[str]
    state: State
    events: list[str]
    mounted: list[bytes]
    left: dict[str, bytes]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LifecycleScenario]:
    with small_stack(tmp_path_factory.mktemp("scenario"), "stack") as stack:
        stack.administer()
        before = stack.inventory()
        printed: dict[str, str | bytes] = {}

        def run(*arguments: str) -> str:
            done = stack.pulumi(*arguments, PULUMI_DEBUG_COMMANDS="true")  # has the option --event-log
            printed[" ".join(arguments)] = done.stdout + done.stderr
            return done.stdout

        with watched_processes(stack) as processes:
            run("preview", "--diff", "--show-secrets")
            log = stack.state / "events.jsonl"
            run("up", "--yes", "--skip-preview", "--json", "--show-secrets", "--event-log", str(log))
            events = log.read_text(encoding="utf-8").splitlines()
            up, keys = stack.inventory(), vault_keys(stack)
            exported = json.loads(run("stack", "export", "--show-secrets"))
            in_state = {key for resource in exported["deployment"]["resources"] for key in _private_keys(resource)}
            mounts = Path(stack.environment.mounts_dir)
            mounted = {path.read_bytes() for path in mounts.glob("clusters-hc1/*/mnt/certs/*-json")}
            plan = str(stack.state / "plan.json")
            run("preview", "--diff", "--show-sames", "--json", "--show-secrets", "--save-plan", plan)
            run("refresh", "--yes", "--skip-preview", "--json")
            run("stack", "output", "--json", "--show-secrets")
            with reader_of(stack, tmp_path_factory.mktemp("reader"), cluster_user=True) as reader:
                printed["the reader's preview"] = reader.pulumi("preview", "--diff", "--show-sames", "--show-secrets")
                printed["the reader's export"] = reader.pulumi("stack", "export", "--show-secrets")
            left = dict(everything(stack, {}))
            run("destroy", "--yes", "--skip-preview", "--json")
            run("stack", "history", "--json", "--show-secrets")
        printed["processes"] = b"\n".join(sorted(processes))
        in_the_end = everything(stack, printed)
        left |= {f"{place} in the end": content for place, content in in_the_end if left.get(place) != content}
        after = stack.inventory()
        yield LifecycleScenario(stack, before, up, after, keys, in_state, exported, events, list(mounted), left)


def test_the_events_of_an_up_have_the_outputs_of_its_state(scenario: LifecycleScenario) -> None:
    outputs = outputs_of(scenario.state)
    assert outputs["hostedClusters"]
    assert outputs_in_log(scenario.events) == outputs


def test_up_takes_nothing_away_and_destroy_leaves_what_was_there_before_and_what_azure_keeps(
    scenario: LifecycleScenario,
) -> None:
    assert scenario.before < scenario.up
    assert scenario.before <= scenario.after
    assert {kind for kind, _ in scenario.after - scenario.before} - {_SIGNING_KEY} == _KEPT
    assert {key for kind, key in scenario.after if kind == "kubernetes"} == {
        key for kind, key in scenario.before if kind == "kubernetes"
    }


def test_each_identity_has_one_key_in_the_vault_and_none_in_the_state(scenario: LifecycleScenario) -> None:
    assert len(scenario.keys) == 3, "two applications, and the managed identity that stands in for the others"
    assert scenario.in_state == set()


def test_a_key_of_the_vault_is_nowhere_else(scenario: LifecycleScenario) -> None:
    search = KeySearch(scenario.keys)
    mounted = [search.names_in(document) for document in scenario.mounted]
    look = {Path(place).name for place, content in scenario.left.items() if b"PRIVATE KEY-----" in content}

    assert sorted(map(sorted, mounted)) == sorted([key] for key in scenario.keys), "it is found where it belongs"
    assert search.places_in(scenario.left.items()) == {}
    assert look == {"server.pem", "expired-server.pem"}, "the TLS key of the local cloud's own endpoints"


def test_states_history_backups_events_logs_and_processes_are_searched(scenario: LifecycleScenario) -> None:
    places = [place for place, content in scenario.left.items() if content]

    for begin in (
        f"{_BACKEND}/stacks/",
        f"{_BACKEND}/history/",
        f"{_BACKEND}/backups/",
        ".localcloud/events.jsonl",
        ".localcloud/plan.json",
        ".localcloud/daemon.log",
        ".localcloud/state.sqlite",
        "Pulumi.local.yaml",
    ):
        assert [place for place in places if place.startswith(begin)], begin
    assert b"PULUMI_CONFIG_PASSPHRASE_FILE=" in scenario.left["processes in the end"]
    assert b"pulumi" in scenario.left["processes in the end"]


def test_a_key_that_is_encrypted_in_the_stacks_file_is_found(scenario: LifecycleScenario) -> None:
    stack = scenario.stack
    name, key = next(iter(scenario.keys.items()))
    assert isinstance(key, RSAPrivateKey)
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    with stack.configured():
        stack.pulumi("config", "set", "--secret", "idstack:planted", base64.b64encode(der).decode())
        files = ((place, content) for place, content in everything(stack, {}) if place.startswith("Pulumi.local.yaml"))
        places = KeySearch({name: key}).places_in(files)

    assert places == {"Pulumi.local.yaml, decrypted": {name}}


def test_no_token_is_left_in_clear(scenario: LifecycleScenario) -> None:
    assert [place for place, content in scenario.left.items() if _JWT.search(content)] == []


def _private_keys(value: Any) -> Iterator[str]:
    """Each PEM private key in `value`, also inside base64 and JSON."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _private_keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _private_keys(part)
    elif isinstance(value, str):
        if value.startswith(("{", '"')):
            yield from _private_keys(json.loads(value))
        elif match := re.search(r"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----", value, re.DOTALL):
            yield match[0]
        elif len(value) > 1000 and re.fullmatch(r"[A-Za-z0-9+/=\n]+", value):
            yield from _private_keys(base64.b64decode(value).decode("latin-1"))
