"""Which authorities a document may name: those that a client of Entra ID can be made for and can ask."""

from __future__ import annotations

import json
from typing import Never, Self

import pytest
from azure.core.exceptions import AzureError, ServiceRequestError
from hypothesis import given
from hypothesis import strategies as st

from identity.credentials import sign_in
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredentialError, decode, validate
from tests.unit.identity.credentials.documents import changed, now
from tests.unit.identity.credentials.world import ARM_SCOPE

GOOD = (
    *(
        "https://login.microsoftonline.com/",
        "HTTPS://Login.Example",
        "https://a.b.",
        "https://a_b/common",
        "https://-a",
    ),
    *("https://xn--mnchen-3ya.example/", "https://127.0.0.1:8443/", "https://[::1]", "https://[2001:db8::1]:443/x"),
    *("https://[::ffff:192.0.2.1]", "https://host:1", "https://host:65535", f"https://{'a' * 63}.example"),
)
BAD = (
    *("https://[::::::]/", "https://[1::2::3]", "https://[12345::]", "https://[127.0.0.1]", "https://[]", "https://"),
    *("https://host:0", "https://host:65536", "https://host:99999/", "https://host:", "https://::1", "https://[::1]x"),
    *("https://a..b", "https://.a", "https://.", "https://..", f"https://{'a' * 64}.example", f"https://{'a.' * 127}a"),
    *("https://999.1.1.1", "https://1.2.3", "https://1.2.3.4.5", "https://münchen.example", "https://[fe80::1%25eth0]"),
    *(
        "https://user@host",
        "https://user:word@host/",
        "https://host?a",
        "https://host#a",
        "https://ho st",
        "http://host",
    ),
)
hosts = st.one_of(
    st.sampled_from([url.partition("//")[2] for url in (*GOOD, *BAD)]),
    st.text(st.sampled_from("0123456789abcfx.:[]%-_@/"), max_size=40),
    st.ip_addresses(v=6).map("[{}]".format),
    st.ip_addresses(v=4).map(str),
    st.from_regex(r"\[[0-9a-f:.]{0,45}\]", fullmatch=True),
    st.from_regex(r"[a-z0-9._-]{1,80}", fullmatch=True),
    st.text(max_size=12),
)
ports = st.just("") | st.integers(-1, 70_000).map(":{}".format)
tenants = st.from_regex(r"[0-9A-Za-z.-]{1,12}", fullmatch=True) | st.text(max_size=6)


class Unreachable:
    """A network on which nothing answers, as a transport of azure-core."""

    def send(self, request: object, **_: object) -> Never:
        raise ServiceRequestError("nothing answers")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize("url", GOOD)
def test_a_host_or_an_address_is_accepted(issued: IssuedCertificate, url: str) -> None:
    validate(changed(issued, authentication_endpoint=url), now=now())


@pytest.mark.parametrize("url", BAD)
def test_what_no_client_can_ask_is_refused(issued: IssuedCertificate, url: str) -> None:
    with pytest.raises(InvalidCredentialError) as refused:
        decode(changed(issued, authentication_endpoint=url))
    (problem,) = refused.value.problems
    assert problem.startswith("authentication_endpoint: found ")
    assert "; accepted: an https URL of the authority, such as https://login.microsoftonline.com/" in problem


@given(host=hosts, port=ports, path=st.sampled_from(("", "/", "/common/v2.0")), tenant=tenants, client_id=st.text())
def test_a_client_can_be_made_and_asked_for_whatever_is_accepted(
    issued: IssuedCertificate, host: str, port: str, path: str, tenant: str, client_id: str
) -> None:
    text = changed(issued, authentication_endpoint=f"https://{host}{port}{path}", tenant_id=tenant, client_id=client_id)
    try:
        known = decode(json.dumps(json.loads(text)))
    except InvalidCredentialError:
        return
    with (
        sign_in.client(
            known.authority_host,
            known.tenant_id,
            known.client_id,
            known.key_material.pem(),
            transport=Unreachable(),
            retry_total=0,
        ) as client,
        pytest.raises(AzureError),
    ):
        client.get_token_info(ARM_SCOPE)
