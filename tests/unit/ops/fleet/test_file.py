"""A fleet file gives the complete configuration of every stack, or a report of everything that is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from identity.settings import load_settings
from ops.fleet.file import fleet_of, load_fleet
from ops.fleet.reading import FleetFileError, read
from ops.fleet.stacks import JOBS, FleetEnvironment, FleetStack, cluster_stack_name, matrices, shared_stack_name
from ops.stack.environment import is_local
from ops.stack.errors import CommandError
from tests.architecture.source import ROOT
from tests.unit import cases
from tests.unit.ops.conftest import Idstack
from tests.unit.ops.fleet.world import AZURE, LOCAL, document, fleet, refusals


def _prod(changed: dict[str, Any]) -> dict[str, Any]:
    environment: dict[str, Any] = changed["environments"][1]
    return environment


def test_waves_are_shared_stack_canaries_and_groups_in_the_order_of_the_file() -> None:
    prod = load_fleet(AZURE)[1]
    assert [(wave.name, [stack.name for stack in wave.stacks], wave.pause) for wave in prod.waves] == [
        ("shared", ["shared-prod"], timedelta()),
        ("canaries", ["hc3-prod"], timedelta()),
        ("wave 1", ["hc1-prod", "hc2-prod"], timedelta(minutes=30)),
        ("wave 2", ["hc4-prod", "hc5-prod"], timedelta(minutes=30)),
    ]

    changed = document()
    _prod(changed)["waves"] = {"pause": "1h30m", "size": 3}
    pauses = [wave.pause for wave in fleet(changed)[1].waves]
    assert pauses == [timedelta(), timedelta(), timedelta(hours=1, minutes=30)], "without canaries"


def by_name(fleet: Iterable[FleetEnvironment]) -> dict[str, FleetStack]:
    return {stack.name: stack for environment in fleet for stack in environment.stacks}


def test_a_shared_stack_has_the_vault_and_no_cluster() -> None:
    shared = load_fleet(AZURE)[0].stacks[0]
    assert (shared.name, shared.cluster, shared.settings.hosted_clusters) == ("shared-dev", None, ())
    assert shared.settings.vault is not None
    assert shared.settings.vault.name == "kv-idstack-dev"


def test_a_fleet_of_the_local_cloud_needs_no_azure_and_no_started_cloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path))
    local = load_fleet(LOCAL)[0]
    assert local.is_local
    assert [stack.name for stack in local.stacks] == ["local-shared", "local-hc2", "local-hc1", "local-hc3"]
    assert local.stacks[1].config["sharedStack"] == "organization/idstack/local-shared"
    assert not local.stacks[0].secrets_provider


def test_a_cluster_overrides_a_key_of_the_defaults_and_null_removes_one() -> None:
    changed = document()
    changed["environments"][0]["clusterDefaults"]["hostedCluster"]["kms"] = {
        "activeKey": "https://kv-etcd-dev.vault.azure.net/keys/{cluster}-etcd/0123456789abcdef0123456789abcdef",
        "keyVaultResourceGroup": "etcd",
    }
    changed["environments"][0]["clusters"] = [
        {"name": "hc1", "hostedCluster": {"kms": {"keyVaultResourceGroup": "etcd-{cluster}"}}},
        {"name": "hc2", "hostedCluster": {"kms": None}},
    ]
    stacks = by_name(fleet(changed))
    first, second = (stacks[name].config["hostedClusters"][0] for name in ("hc1-dev", "hc2-dev"))
    assert first["kms"] == {
        "activeKey": "https://kv-etcd-dev.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef",
        "keyVaultResourceGroup": "etcd-hc1",
    }
    assert "kms" not in second


def test_the_settings_are_those_that_the_program_loads_from_the_stacks_file() -> None:
    for stack in by_name(load_fleet(AZURE)).values():
        texts = {
            key.removeprefix("idstack:"): value if isinstance(value, str) else json.dumps(value)
            for key, value in stack.configuration.items()
            if key.startswith("idstack:")
        }
        assert load_settings(texts, secret_keys=(), local=None) == stack.settings


_PROD: Final = "environments[1]"
_OF_PROD: Final[dict[str, Any]] = _prod(document())["clusterDefaults"]["hostedCluster"]


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        (place, value, rule)
        for rule, values in cases.read(Path(__file__).with_name("refused.yaml"), {}).items()
        for place, value in values.items()
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(place: str, value: Any, rule: str) -> None:
    changed = document()
    holder: Any = changed
    *parents, last = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", place)]
    for step in parents:
        holder = holder[step]
    if last == len(holder) and isinstance(holder, list):
        holder.append(value)
    elif value is None:
        del holder[last]
    else:
        holder[last] = value

    at, found = refusals(changed)[0]

    assert found == rule
    assert at == place or (isinstance(value, dict) and at == f"{place}.name")


def test_all_problems_are_in_one_report_a_wrong_default_once_and_no_credential() -> None:
    changed = document()
    _prod(changed)["waves"]["canaries"] = ["hc9"]
    _prod(changed)["settings"]["tenantId"] = "tenant"
    assert [rule for _, rule in refusals(changed)] == ["unknown-canary", "tenant-id"]
    reports = []
    for key, value in (
        ("clusterDefaults", {"hostedCluster": _OF_PROD | {"vnetID": "x"}}),
        ("backend", "azblob://state?storage_account=abc&sig=verysecret"),
    ):
        changed = document()
        _prod(changed)[key] = value
        with pytest.raises(FleetFileError) as refused:
            fleet(changed)
        reports.append(str(refused.value))
    assert "environments[1].clusterDefaults.hostedCluster.vnetID (stack hc1-prod and 4 more)\n" in reports[0]
    assert "it seems to have a credential in it" in reports[1]
    assert not [report for report in reports if "verysecret" in report or "pulumi -- config" in report]
    changed = document()
    _prod(changed)["name"] = "local"
    assert refusals(changed)[0] == (f"{_PROD}.settings.cloud", "cloud-and-name"), "a local name is a local one's"


def test_a_missing_setting_is_named_where_the_file_would_have_it() -> None:
    changed = document()
    for environment in changed["environments"]:
        environment["settings"].pop("location", None)
        environment["clusters"] = []
        environment.pop("waves", None)
    assert refusals(changed) == [
        ("environments[0].settings.location", "missing"),
        ("environments[1].settings.location", "missing"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("[", "environments: []\nenvironments: []\n", "- a", "", "environments: &a [*a]"),
        "a: !!python/name:os.system",
    ],
)
def test_what_is_no_fleet_file_is_refused_without_a_trace(tmp_path: Path, text: str) -> None:
    with pytest.raises(FleetFileError):
        fleet_of(text)
    with pytest.raises(CommandError, match=r"there is no fleet file .*fleet\.yaml"):
        load_fleet(tmp_path / "fleet.yaml")


def test_a_name_is_read_as_pulumi_reads_it_in_the_stacks_file() -> None:
    [environment] = read("environments:\n- name: on\n  clusters:\n  - name: no\n", "fleet.yaml").environments
    assert (environment.name, environment.clusters[0].name) == ("on", "no")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("environments:\n- settings: {key: [{1: 2}]}\n", "the key 1 is not a string in line 2"),
        ("'1': 1\nenvironments:\n  true: x\n", "the key True is not a string in line 3"),
    ],
)
def test_a_key_that_is_no_text_is_named_with_its_line(text: str, told: str) -> None:
    with pytest.raises(FleetFileError, match=told):
        fleet_of(text)


def test_the_example_of_the_documentation_has_the_keys_of_the_model() -> None:
    [example, *_] = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/guides/fleet.md").read_text(encoding="utf-8"), re.DOTALL
    )
    for placeholder, value in (("<uuid>", "22222222-3333-4444-8555-666666666666"), ("<digest>", "0" * 64)):
        example = example.replace(placeholder, value)
    [prod] = read(example, "fleet.yaml").environments

    assert prod.operator is not None
    assert [cluster.name for cluster in prod.clusters] == ["hc1", "hc2", "hc3"]
    assert prod.waves.canaries == ("hc3",)


_ENVIRONMENT: Final = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)
_CLUSTER: Final = st.from_regex(r"[a-z0-9]{1,6}([.-][a-z0-9]{1,5}){0,2}", fullmatch=True)
# pulumi/pulumi sdk/go/common/tokens/stack_name.go, and a DNS label of Kubernetes.
_PULUMI: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@given(environment=_ENVIRONMENT, cluster=_CLUSTER)
def test_a_stack_has_a_name_that_pulumi_and_kubernetes_take(environment: str, cluster: str) -> None:
    for name in (cluster_stack_name(environment, cluster), shared_stack_name(environment)):
        assert _PULUMI.fullmatch(name)
        assert _LABEL.fullmatch(name)
        assert is_local(name) or not is_local(environment), "the name decides who gets the emulated plugins"


@given(names=st.lists(st.text(max_size=60), max_size=4))
@example(names=["a.b"])  # a name that is taken, of which the defaults make an infraID that is not
def test_whatever_clusters_are_called_the_file_is_taken_or_refused(names: list[str]) -> None:
    changed = document(LOCAL)
    changed["environments"][0]["clusters"] = [{"name": name} for name in names]
    changed["environments"][0].pop("waves")
    places = [place.split(".")[1].partition("[")[0] for place, _ in refusals(changed)]
    assert set(places) <= {"clusters", "clusterDefaults"}


def _prod_in_waves(clusters: int = 5, **waves: Any) -> FleetEnvironment:
    changed = document()
    changed["environments"][1]["clusters"] = [{"name": f"c{number}"} for number in range(clusters)]
    changed["environments"][1]["waves"] = waves
    return fleet(changed)[1]


def test_each_wave_is_the_matrix_of_a_job() -> None:
    assert matrices(_prod_in_waves(canaries=["c3"], size=2)) == {
        "shared": {"stack": ["shared-prod"]},
        "canaries": {"stack": ["c3-prod"]},
        "wave-1": {"stack": ["c0-prod", "c1-prod"]},
        "wave-2": {"stack": ["c2-prod", "c4-prod"]},
        "wave-3": None,
        "wave-4": None,
    }
    empty = matrices(_prod_in_waves(clusters=0))
    assert {job for job, matrix in empty.items() if matrix is None} == {"canaries", *JOBS}
    with pytest.raises(CommandError, match="GitHub's jobs cannot reach"):
        matrices(fleet(document(LOCAL))[0])


@pytest.mark.parametrize(
    ("clusters", "waves", "reason"),
    [
        (5, {"size": 1}, "makes 5 waves, and the workflow has jobs for 4"),
        (257, {}, "has 257 stacks, and GitHub runs 256 jobs"),
    ],
)
def test_what_the_workflow_cannot_run_is_refused(clusters: int, waves: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        matrices(_prod_in_waves(clusters, **waves))


def test_the_command_prints_a_line_for_each_job_as_a_step_writes_its_outputs(idstack: Idstack) -> None:
    printed = idstack("fleet", "matrix", "--file", str(AZURE), "--environment", "dev")
    assert printed.code == 0, printed.error
    assert printed.output.splitlines() == [
        'shared={"stack": ["shared-dev"]}',
        "canaries=",
        'wave-1={"stack": ["hc1-dev", "hc2-dev"]}',
        "wave-2=",
        "wave-3=",
        "wave-4=",
    ]
