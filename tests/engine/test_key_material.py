"""The vault is a private key's only home: none is in the state, encrypted or not, or in what runs leave behind.

Whoever may preview a stack decrypts its states, so what is encrypted in them is searched like the rest.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.engine.key_material import KeySearch, everything, vault_keys, watched_processes
from tests.engine.killing import small_stack
from tests.engine.reader import reader_of
from tests.harness import LocalStack

_BACKEND: Final = ".localcloud/pulumi/backend/.pulumi"


@dataclass(frozen=True)
class Searched:
    """A stack after some runs, the search for every key of its vault, and what the runs printed."""

    stack: LocalStack
    search: KeySearch
    printed: dict[str, str | bytes]
    keys: int


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    with small_stack(tmp_path_factory.mktemp("searched"), "stack", warm=False) as stack:
        printed: dict[str, str | bytes] = {}

        def run(*arguments: str) -> None:
            done = stack.pulumi(*arguments)
            printed[" ".join(arguments)] = done.stdout + done.stderr

        with watched_processes(stack) as processes:
            run("preview", "--diff", "--show-secrets")
            run("up", "--yes", "--skip-preview", "--json", "--show-secrets")
            stack.up_with_steps()
            run("preview", "--save-plan", str(stack.state / "plan.json"), "--show-secrets")
            run("refresh", "--yes", "--skip-preview", "--json")
            run("stack", "export", "--show-secrets")
            run("stack", "output", "--json", "--show-secrets")
            run("stack", "history", "--json", "--show-secrets")
            with reader_of(stack, tmp_path_factory.mktemp("reader"), cluster_user=True) as reader:
                printed["the reader's preview"] = reader.pulumi("preview", "--diff", "--show-sames", "--show-secrets")
                printed["the reader's export"] = reader.pulumi("stack", "export", "--show-secrets")
        printed["processes"] = processes.text
        keys = vault_keys(stack)
        yield Searched(stack, KeySearch(keys), printed, len(keys))


def test_a_key_of_the_vault_is_nowhere_else(searched: Searched) -> None:
    assert searched.keys == 3, "two applications and a managed identity"
    assert searched.search.places_in(everything(searched.stack, searched.printed)) == {}


def test_states_history_backups_events_logs_and_processes_are_searched(searched: Searched) -> None:
    places = [place for place, content in everything(searched.stack, searched.printed) if content]

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
        assert [each for each in places if each.startswith(begin)], begin
    processes = searched.printed["processes"]
    assert isinstance(processes, bytes)
    assert b"PULUMI_CONFIG_PASSPHRASE_FILE=" in processes
    assert b"pulumi" in processes


def test_a_key_that_is_encrypted_in_the_stacks_file_is_found(searched: Searched) -> None:
    stack = searched.stack
    name, key = next(iter(vault_keys(stack).items()))
    assert isinstance(key, RSAPrivateKey)
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    with stack.configured():
        stack.pulumi("config", "set", "--secret", "idstack:planted", base64.b64encode(der).decode())
        places = searched.search.places_in(everything(stack, {}))

    assert places["Pulumi.local.yaml, decrypted"] == {name}
    assert "Pulumi.local.yaml" not in places
