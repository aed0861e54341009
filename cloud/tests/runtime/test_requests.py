"""`python -m localcloud requests`: what clients asked of a local cloud that runs."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys

import httpx
import pytest

from localcloud.core.clouds import LocalEnvironment
from tests.source import PACKAGES


@pytest.fixture(scope="module")
def asked(local_cloud: LocalEnvironment) -> LocalEnvironment:
    """A local cloud that one client asked two things, and another one a third."""
    context = ssl.create_default_context(cafile=local_cloud.ca_file)
    for client, service, path in (("one/1.0", "arm", "/tenants"), ("one/1.0", "entra", "/a"), ("two", "arm", "/b")):
        base = {"arm": local_cloud.arm_endpoint, "entra": local_cloud.authority_host.rstrip("/")}[service]
        httpx.get(f"{base}{path}", headers={"User-Agent": f"{client} (Linux)"}, verify=context)
    return local_cloud


def printed(asked: LocalEnvironment, *options: str) -> list[str]:
    line = [sys.executable, "-m", "localcloud", "--state-dir", asked.state_dir, "requests", *options]
    done = subprocess.run(line, cwd=PACKAGES, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_request_is_a_line_with_the_clients_product(asked: LocalEnvironment) -> None:
    [line] = printed(asked, "--client", "TWO")

    assert line.split()[1:] == ["arm", "400", "GET", "/b", "two"]


def test_requests_of_one_service_are_printed(asked: LocalEnvironment) -> None:
    of_one = printed(asked, "--client", "one/1.0", "--service", "entra", "--json")

    assert [json.loads(line)["path"] for line in of_one] == ["/a"]


def test_the_newest_are_printed(asked: LocalEnvironment) -> None:
    newest = printed(asked, "--client", "(linux)", "--last", "2", "--json")

    assert [json.loads(line)["path"] for line in newest] == ["/a", "/b"]
