"""How a container's words are made to mean this machine's paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubelet.commands import Machine, expand, localiser

TREE = Path("/tree")
local = localiser(["/mnt/certs", "/etc/kubernetes/", "/mnt"], TREE)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/mnt/certs", "/tree/mnt/certs"),
        ("/mnt/certs/cpo-hc1-json", "/tree/mnt/certs/cpo-hc1-json"),
        ("/mnt/other", "/tree/mnt/other"),
        ("--config-file-path=/etc/kubernetes/azure.json", "--config-file-path=/tree/etc/kubernetes/azure.json"),
        ("/mnt/a:/mnt/b,/mnt/c", "/tree/mnt/a:/tree/mnt/b,/tree/mnt/c"),
        ("cat '/mnt/a' \"/mnt/b\"; ls /mnt", "cat '/tree/mnt/a' \"/tree/mnt/b\"; ls /tree/mnt"),
        ("file:///mnt/certs/tls.crt", "file:///tree/mnt/certs/tls.crt"),
    ],
)
def test_a_path_under_a_mount_is_found_wherever_it_begins(written: str, meant: str) -> None:
    assert local(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "/etc/passwd",
        "/mntx",
        "/mnt-certs/a",
        "mnt/certs",
        "/var/mnt/certs",
        "https://example.com/mnt/certs",
        "/etc/kubernetes.d/azure.json",
        "",
    ],
)
def test_what_only_looks_like_a_path_under_a_mount_stays(written: str) -> None:
    assert local(written) == written


@given(st.text())
def test_without_mounts_every_string_stays(text: str) -> None:
    assert localiser([], TREE)(text) == text


@given(st.lists(st.sampled_from(("/mnt/certs/a", " ", "=", "x", "/", "/usr", "/mnt")), max_size=8).map("".join))
def test_words_change_by_the_tree_alone(text: str) -> None:
    assert local(text).replace("/tree/", "/") == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("$(HOST):$(PORT)", "127.64.0.1:8080"),
        ("$(NONE) $HOST ${HOST}", "$(NONE) $HOST ${HOST}"),
        ("$$(HOST) $$", "$(HOST) $"),
        ("$(HOST", "$(HOST"),
        ("$(WITH.DOT-AND_1)", "yes"),
    ],
)
def test_references_to_variables_are_expanded_as_kubernetes_does(written: str, meant: str) -> None:
    assert expand(written, {"HOST": "127.64.0.1", "PORT": "8080", "WITH.DOT-AND_1": "yes"}) == meant


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/usr/bin/operator", "{programs}/operator"),
        ("/usr/bin/other", None),
        ("operator", None),
    ],
    ids=["one of the images'", "another", "a name that PATH leads to"],
)
def test_an_absolute_command_is_looked_for_among_the_images_programs(
    tmp_path: Path, command: str, program: str | None
) -> None:
    (tmp_path / "operator").touch()
    machine = Machine("ca.crt", "https://127.0.0.1:20000", tmp_path)

    assert machine.program(command) == (program and program.format(programs=tmp_path))
    assert Machine("ca.crt", "https://127.0.0.1:20000").program(command) is None
