"""Reads a fleet file: the complete configuration of every stack in it, validated by the product's own settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from identity.clouds import LOCAL_CLOUD
from identity.secrets_store import duration
from identity.settings import ConfigurationError, Settings
from identity.settings.rules.stack import validate_settings
from identity.settings.schema.problems import NAMESPACE, Place, enumerate_words, path_of
from identity.settings.schema.schema_node import ReportedPlace
from ops.fleet.reading import LONGEST_STACK_NAME, EnvironmentSettings, FleetFileError, FleetReport, FleetSettings, read
from ops.fleet.stacks import FleetEnvironment, FleetStack, Wave, cluster_stack_name, shared_stack_name
from ops.stack import local_cloud
from ops.stack.environment import is_local
from ops.stack.errors import CommandError, why_unreadable
from ops.stack.settings import validated

DEFAULT_FILE: Final = "fleet.yaml"
_CLUSTERS: Final = "hostedClusters"
_SHARED: Final = "sharedStack"
_BACKEND: Final = "backend"
# Rules of `identity.settings` about the hosted clusters of one stack that hold for those of one vault.
_ACROSS_CLUSTERS: Final = frozenset(
    {
        "duplicate-cluster-name",
        "duplicate-infra-id",
        "duplicate-issuer-name",
        "duplicate-secret-name",
        "created-group-shared",
        "optional-identity-used-once",
    }
)
# The same of those whose HyperShift is one.
_ACROSS_A_MANAGEMENT_CLUSTER: Final = frozenset({"hosted-clusters-of-both-ways"})
# Keys that the fleet itself writes, of a stack and of its entry of `hostedClusters`, and what is accepted instead.
_OF_STACKS: Final = {
    _BACKEND: "the file of each stack records the environment's `backend`",
    _SHARED: "the stacks of the clusters name the environment's shared stack by themselves",
    _CLUSTERS: "the fleet has a stack for each of `clusters`, whose keys are in `hostedCluster`",
}
_OF_ENTRIES: Final = {"name": "the name of a hosted cluster is that of its line in `clusters`"}


def load_fleet(path: Path) -> tuple[FleetEnvironment, ...]:
    """The environments in a file, in their order.

    Raises FleetFileError with every problem of the file, and CommandError for a file that cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CommandError(f"there is no fleet file {path}: docs/guides/fleet.md has an example") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"the fleet file {path} cannot be read: {why_unreadable(error)}") from None
    return fleet_of(text, path.name)


def fleet_of(text: str, file: str = DEFAULT_FILE) -> tuple[FleetEnvironment, ...]:
    """The environments in the text of a file called `file`; raises FleetFileError with every problem."""
    settings = read(text, file)
    report = FleetReport()
    _validate(settings, report)
    vaults: dict[str, str] = {}
    environments = tuple(
        _Environment(environment, ("environments", index), report, vaults).build()
        for index, environment in enumerate(settings.environments)
    )
    if report.problems:
        raise FleetFileError(file, report.problems)
    return environments


def _validate(settings: FleetSettings, report: FleetReport) -> None:
    """Refuse what does not fit together in the file itself."""
    if not settings.environments:
        report.refuse_by_rule(("environments",), [], "no-environment")
    stacks: dict[str, Place] = {}
    for index, environment in enumerate(settings.environments):
        place: Place = ("environments", index)
        names: dict[Place, str] = {}
        if environment.shared is not None:
            names[*place, "name"] = shared_stack_name(environment.name)
        for number, cluster in enumerate(environment.clusters):
            names[*place, "clusters", number, "name"] = cluster_stack_name(environment.name, cluster.name)
        for at, name in names.items():
            first = stacks.setdefault(name, at)
            if first != at:
                report.refuse_by_rule(at, name, "duplicate-stack-name", stack=name, first=path_of(first))
            elif is_local(name) != is_local(environment.name):
                report.refuse_by_rule(at, name, "local-stack-name", stack=name)
            elif len(name) > LONGEST_STACK_NAME:
                report.refuse_by_rule(at, name, "stack-name-too-long", most=LONGEST_STACK_NAME)
        if environment.shared is None and not environment.clusters:
            report.refuse_by_rule((*place, "clusters"), [], "no-stack")
        canaries, clusters = environment.waves.canaries, {cluster.name for cluster in environment.clusters}
        for number, canary in enumerate(canaries):
            if canary not in clusters or canary in canaries[:number]:
                report.refuse_by_rule((*place, "waves", "canaries", number), canary, "unknown-canary")
        _validate_place_of_states(environment, place, report)
        for at, written, refused in _mappings(environment, place):
            for key in [key for key in written if key in refused]:
                report.refuse_by_rule((*at, key), written[key], "written-by-the-fleet", instead=refused[key])


def _mappings(
    environment: EnvironmentSettings, place: Place
) -> Iterator[tuple[Place, Mapping[str, Any], Mapping[str, str]]]:
    """The mappings of settings with their places, each with the keys that the fleet itself writes."""
    yield (*place, "settings"), environment.settings, _OF_STACKS
    if environment.shared is not None:
        yield (*place, "shared", "settings"), environment.shared.settings, _OF_STACKS
    clusters = [((*place, "clusters", index), cluster) for index, cluster in enumerate(environment.clusters)]
    for at, fields in [((*place, "clusterDefaults"), environment.cluster_defaults), *clusters]:
        yield (*at, "settings"), fields.settings, _OF_STACKS
        yield (*at, "hostedCluster"), fields.hosted_cluster, _OF_ENTRIES


def _validate_place_of_states(environment: EnvironmentSettings, place: Place, report: FleetReport) -> None:
    """A local environment has backend and key of the local cloud; another one names its own."""
    local = is_local(environment.name)
    cloud = environment.settings.get("cloud")
    if local != (cloud == LOCAL_CLOUD):
        report.refuse_by_rule((*place, "settings", "cloud"), cloud, "cloud-and-name", local=LOCAL_CLOUD)
    if local and environment.operator is not None:
        report.refuse_by_rule((*place, "operator"), {}, "local-operator")
    for key, value, what in (
        ("backend", environment.backend, "where the states are"),
        ("secretsProvider", environment.secrets_provider, "the key that encrypts the states' secrets"),
    ):
        if local and value is not None:
            report.refuse_by_rule((*place, key), value, "local-state")
        if not local and value is None:
            report.refuse_by_rule((*place, key), None, "missing", what=what)


@dataclass(frozen=True)
class _Environment:
    """Builds the stacks of one environment and reports its problems. `vaults` has the stack of each vault so far."""

    settings: EnvironmentSettings
    place: Place
    report: FleetReport
    vaults: dict[str, str]

    def build(self) -> FleetEnvironment:
        """The environment with its waves. Incomplete if the report has problems."""
        shared = None
        if self.settings.shared is not None:
            layered = self._layered({"environment": self.settings.name})
            layered.lay(self.settings.shared.settings, (*self.place, "shared", "settings"))
            shared = self._stack(shared_stack_name(self.settings.name), None, layered)
        clusters: dict[str, FleetStack] = {}
        valid: list[tuple[Layered, Settings]] = []
        for index, cluster in enumerate(self.settings.clusters):
            layered = self._cluster(index)
            stack = self._stack(cluster_stack_name(self.settings.name, cluster.name), cluster.name, layered)
            if stack is not None:
                clusters[cluster.name] = stack
                valid.append((layered, stack.settings))
                self._compare_with_shared(shared, stack, layered)
        self._validate_across(valid)
        return FleetEnvironment(
            name=self.settings.name,
            backend=self.settings.backend,
            shared=shared,
            waves=tuple(self._waves(shared, clusters)),
            operator=self.settings.operator,
        )

    def _layered(self, names: Mapping[str, str]) -> Layered:
        """The settings of every stack of the environment; `names` are filled in."""
        layered = Layered(names, self.report)
        layered.lay(self.settings.settings, (*self.place, "settings"))
        if self.settings.backend is not None:
            layered.values[_BACKEND] = self.settings.backend
            layered.sources[(_BACKEND,)] = (*self.place, "backend")
        return layered

    def _cluster(self, index: int) -> Layered:
        cluster = self.settings.clusters[index]
        own: Place = (*self.place, "clusters", index)
        defaults: Place = (*self.place, "clusterDefaults")
        layered = self._layered({"cluster": cluster.name, "environment": self.settings.name})
        layered.lay(self.settings.cluster_defaults.settings, (*defaults, "settings"))
        layered.lay(cluster.settings, (*own, "settings"))
        entry: dict[str, Any] = {"name": cluster.name}
        if self.settings.shared is not None:
            layered.values[_SHARED] = f"organization/{NAMESPACE}/{shared_stack_name(self.settings.name)}"
        layered.values[_CLUSTERS] = [entry]
        at: Place = (_CLUSTERS, 0)
        layered.lay(self.settings.cluster_defaults.hosted_cluster, (*defaults, "hostedCluster"), at)
        layered.lay(cluster.hosted_cluster, (*own, "hostedCluster"), at)
        layered.sources[*at, "name"] = (*own, "name")
        return layered

    def _stack(self, name: str, cluster: str | None, layered: Layered) -> FleetStack | None:
        """The stack with these settings; None if they are refused."""
        try:
            settings = validated(layered.values, local_cloud.for_validation(name))
        except ConfigurationError as error:
            sources = {path_of(place): path_of(source) for place, source in layered.sources.items() if place}
            for problem in error.problems:
                if problem.rule == "vault-missing":
                    at: Place = (*self.place, "shared", "settings", "vault")
                    accepted = "the Key Vault of the environment's credentials, by its name"
                    fix = f"`{path_of((*at, 'name'))}: <vault>`"
                    self.report.refuse_setting(replace(problem, accepted=accepted, fix=fix), name, at, {})
                else:
                    self.report.refuse_setting(problem, name, layered.source_of(problem.place), sources)
            return None
        if settings.vault is not None:
            # A vault's name is unique in Azure, so that no two stacks can have the same one.
            vault = settings.vault.name
            if (first := self.vaults.setdefault(vault.lower(), name)) != name:
                self.report.refuse_by_rule(layered.source_of(("vault", "name")), vault, "duplicate-vault", first=first)
        return FleetStack(
            name=name,
            environment=self.settings.name,
            cluster=cluster,
            secrets_provider=self.settings.secrets_provider,
            config=layered.values,
            settings=settings,
        )

    def _compare_with_shared(self, shared: FleetStack | None, stack: FleetStack, layered: Layered) -> None:
        """A cluster's stack has the cloud, tenant and subscription of the shared one (docs/guides/stacks.md)."""
        if shared is None:
            return
        for key, ours, theirs in (
            ("cloud", stack.settings.cloud.name, shared.settings.cloud.name),
            ("tenantId", stack.settings.tenant_id, shared.settings.tenant_id),
            ("subscriptionId", stack.settings.subscription_id, shared.settings.subscription_id),
        ):
            if ours != theirs:
                fields = {"theirs": theirs, "shared": shared.name, "common": path_of((*self.place, "settings", key))}
                self.report.refuse_by_rule(layered.source_of((key,)), ours, "differs-from-shared-stack", **fields)

    def _validate_across(self, valid: Sequence[tuple[Layered, Settings]]) -> None:
        """Compare the clusters of one vault, and those of one HyperShift, as `identity.settings` compares a stack's."""
        self._compare(valid, _ACROSS_CLUSTERS)
        for manager in dict.fromkeys(settings.management_cluster for _, settings in valid):
            managed = [(layered, settings) for layered, settings in valid if settings.management_cluster == manager]
            self._compare(managed, _ACROSS_A_MANAGEMENT_CLUSTER)

    def _compare(self, valid: Sequence[tuple[Layered, Settings]], rules: Set[str]) -> None:
        if len(valid) < 2:
            return
        combined = valid[0][1].model_copy(
            update={"hosted_clusters": tuple(settings.hosted_clusters[0] for _, settings in valid)}
        )
        root = ReportedPlace(())
        validate_settings(combined, None, root)
        for problem in root.problems:
            if problem.rule in rules:
                _, index, *rest = problem.place
                assert isinstance(index, int), "these rules are about entries of hostedClusters"
                layered, settings = valid[index]
                name = cluster_stack_name(self.settings.name, settings.hosted_clusters[0].name)
                source = layered.source_of((_CLUSTERS, 0, *rest))
                sources = {path_of(problem.place): path_of(source)}
                self.report.refuse_setting(problem, name, source, sources)

    def _waves(self, shared: FleetStack | None, clusters: Mapping[str, FleetStack]) -> Iterator[Wave]:
        if shared is not None:
            yield Wave(name="shared", stacks=(shared,))
        canaries = [clusters[name] for name in self.settings.waves.canaries if name in clusters]
        if canaries:
            yield Wave(name="canaries", stacks=tuple(canaries))
        others = [stack for name, stack in clusters.items() if name not in self.settings.waves.canaries]
        size = self.settings.waves.size or len(others)
        pause = duration(self.settings.waves.pause) if self.settings.waves.pause else timedelta()
        for number, start in enumerate(range(0, len(others), size or 1), start=1):
            is_first = number == 1 and not canaries
            stacks = tuple(others[start : start + size])
            yield Wave(name=f"wave {number}", stacks=stacks, pause=timedelta() if is_first else pause)


# `${x}` is a shell's, not ours.
_NAME: Final = re.compile(r"(?<!\$)\{([a-zA-Z][a-zA-Z0-9]*)\}")


@dataclass
class Layered:
    """One mapping built of layers; `sources` has the fleet file's place of each value and mapping in it."""

    names: Mapping[str, str]
    report: FleetReport
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[Place, Place] = field(default_factory=dict)

    def lay(self, layer: Mapping[str, Any], source: Place, at: Place = ()) -> None:
        """Lay a mapping over what is at `at`; `source` is its place in the fleet file."""
        holder: Any = self.values
        for step in at:
            holder = holder[step]
        self.sources.setdefault(at, source)
        self._merge(holder, layer, at, source)

    def source_of(self, place: Place) -> Place:
        """Where the fleet file spells the value at `place`, or would spell it if it is missing."""
        for end in range(len(place), -1, -1):
            if (source := self.sources.get(place[:end])) is not None:
                return *source, *place[end:]
        return place

    def _merge(self, below: dict[str, Any], above: Mapping[str, Any], at: Place, source: Place) -> None:
        for key, value in above.items():
            place, spelled = (*at, key), (*source, key)
            if isinstance(value, Mapping) and isinstance(below.get(key), dict):
                self._merge(below[key], value, place, spelled)
                continue
            self.sources = {at: spelt for at, spelt in self.sources.items() if at[: len(place)] != place}
            if value is None:
                below.pop(key, None)
                continue
            below[key] = self._filled(value, place, spelled)

    def _filled(self, value: Any, place: Place, source: Place) -> Any:
        """A copy of a value with its names filled in, its source noted."""
        self.sources[place] = source
        if isinstance(value, Mapping):
            return {
                key: self._filled(item, (*place, key), (*source, key))
                for key, item in value.items()
                if item is not None
            }
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._filled(item, (*place, i), (*source, i)) for i, item in enumerate(value)]
        return _NAME.sub(lambda name: self._name(name, value, source), value) if isinstance(value, str) else value

    def _name(self, match: re.Match[str], text: str, source: Place) -> str:
        name = match[1]
        if name in self.names:
            return self.names[name]
        known = enumerate_words((f"{{{known}}}" for known in self.names), last="or")
        if all(problem.place != source for problem in self.report.problems):
            self.report.refuse_by_rule(source, text, "unknown-name", known=known)
        return match[0]
