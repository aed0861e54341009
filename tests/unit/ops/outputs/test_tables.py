"""The tables as people see them: golden files for three widths of the screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from ops.outputs.rows import Row
from ops.outputs.tables import FittedTable, counted, credentials, sign_ins
from ops.world.cluster_state import ProbeResult
from tests.unit.ops.stacks import answered, refused, report

GOLDEN = Path(__file__).parent / "golden"
MOUNTS = Path("/state/mounts")
NOW = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)
NOT_REGISTERED = (
    "AADSTS700027: The certificate with identifier used to sign the client assertion is not registered on application. "
    "[Reason - The key was not found., Thumbprint of key used by client: '9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70']"
)


def row(identity: str, secret_provider_class: str, secret: str, *probes: ProbeResult) -> Row:
    return Row(
        cluster="hc1",
        identity=identity,
        client_id="6f2c1e7a-0000-4000-8000-00000000bbbb",
        secret=secret,
        secret_provider_class=secret_provider_class,
        not_after=datetime(2027, 2, 19, 16, 50, 4, tzinfo=UTC),
        renew_after=datetime(2027, 1, 5, 16, 50, 4, tzinfo=UTC),
        thumbprint="9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70",
        probes=probes,
    )


def granted(pod: str, path: str, action: str) -> ProbeResult:
    """A ready probe whose credential is at `path` in the pod."""
    proof = {"ok": True, "status": 200, "action": action, "error": None, "at": "2026-11-21T17:00:00Z"}
    return answered(pod, report(f"{MOUNTS}/clusters-hc1/{pod}{path}", proof=proof), MOUNTS)


def proven(identity: str, name: str, secret: str, mount: str, action: str, *others: ProbeResult) -> Row:
    """An identity whose probe is called as its class."""
    first = granted(f"probe-{name}", f"{mount}/{secret}", f"Microsoft.{action}")
    return row(identity, f"managed-azure-{name}", secret, first, *others)


_ENCRYPT = "KeyVault/vaults/keys/encrypt/action"
_SECOND = granted("probe-kms-2", "/mnt/kms/kms-hc1-json", f"Microsoft.{_ENCRYPT}")
# The longest names of the catalogue, an identity with two mounts, a refused sign-in and a pod that does not run.
GREEN = [
    proven("controlPlaneOperator", "cpo", "cpo-hc1-json", "/mnt/certs", "Resources/subscriptions/resourceGroups/read"),
    proven(
        "nodePoolManagement",
        "nodepool-management",
        "nodepool-mgmt-hc1-json",
        "/mnt/certs",
        "Compute/virtualMachines/read",
    ),
    proven("network", "network", "cncc-hc1-json", "/var/run/secrets/azure", "Network/virtualNetworks/read"),
    proven("kms", "kms", "kms-hc1-json", "/mnt/certs", _ENCRYPT, _SECOND),
]
_MOUNTED = f"{MOUNTS}/clusters-hc1/probe-ingress/mnt/certs/ingress-hc1-json"
_REFUSED = answered("probe-ingress", refused(NOT_REGISTERED, _MOUNTED), MOUNTS)
_PENDING = ProbeResult("probe-disk-csi", None, "the pod is pending: ContainerCreating: MountVolume.SetUp failed")
FAILING = [
    GREEN[0],
    row("ingress", "managed-azure-ingress", "ingress-hc1-json", _REFUSED),
    row("disk", "managed-azure-disk-csi", "azure-disk-hc1-json", _PENDING),
]


def printed(table: FittedTable, width: int) -> str:
    """The table on a screen without colours, blanks at line ends left out."""
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table, soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_tables_look_as_in_the_golden_files() -> None:
    tables = {"sign-ins": sign_ins(GREEN), "failures": sign_ins(FAILING), "status": credentials(GREEN, NOW)}
    for name, table in tables.items():
        assert printed(table, 1000) == golden(f"{name}-wide")
    assert printed(sign_ins(FAILING), 80) == golden("failures-80")
    assert printed(sign_ins([]), 80).strip() == ""


def test_status_shows_the_first_failure_and_nothing_live_where_no_probe_answers() -> None:
    unreachable = [replace(credential, probes=()) for credential in GREEN]
    wide, narrow = (printed(credentials(unreachable, NOW), width) for width in (1000, 80))
    assert wide.splitlines()[0].split("  ")[-1] == "days left"
    assert "sign-in" not in narrow
    lines = [line for line in narrow.splitlines() if line.strip()]
    assert len(lines) == 2 + 1 + 2 * len(GREEN), "headings, a rule, and two lines for an identity where they fit"
    failing = answered("probe-kms-2", refused("AADSTS700016: no application"))
    kms = replace(GREEN[3], probes=(GREEN[3].probes[0], failing))
    assert "AADSTS700016: no application  not yet" in printed(credentials([kms], NOW), 1000)


@pytest.mark.parametrize("width", range(20, 220, 20))
def test_no_word_is_broken_and_80_columns_are_enough(width: int) -> None:
    for table, rows in ((sign_ins(FAILING), FAILING), (credentials(GREEN, NOW), GREEN)):
        text = printed(table, width)
        names = {name for row in rows for name in (row.identity, row.secret_provider_class)}
        assert names <= set(text.split())
        assert width < 80 or max(map(len, text.splitlines())) <= width
    assert set(NOT_REGISTERED.split()) <= set(printed(sign_ins(FAILING), width).split())
    path = f"/mnt/certs/{'s' * 127}"  # the longest name of a secret
    longest = replace(GREEN[0], probes=(granted("probe-cpo", path, "Microsoft.Compute/disks/read"),))
    assert path in printed(sign_ins([longest]), max(width, 80)).split()
    elsewhere = replace(GREEN[0], probes=(answered("probe-cpo", report("/mnt/certs/cpo-hc1-json")),))
    assert "/mnt/certs/cpo-hc1-json" in printed(sign_ins([elsewhere]), max(width, 80)).split()


def test_one_is_singular() -> None:
    assert [counted(1, "check"), counted(2, "identity"), counted(0, "file")] == ["1 check", "2 identities", "0 files"]


def test_days_left_are_green_then_yellow_then_red() -> None:
    def colours(days: int) -> str:
        console = Console(width=1000, color_system="standard", force_terminal=True)
        with console.capture() as capture:
            console.print(credentials([replace(GREEN[0], not_after=NOW + timedelta(days=days), probes=())], NOW))
        return capture.get()

    assert "\x1b[32m14" in colours(14)
    assert "\x1b[33m13" in colours(13)
    assert "\x1b[31m-1" in colours(-1)
