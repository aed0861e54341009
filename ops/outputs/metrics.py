"""The results of `idstack status` for Prometheus: a file for node_exporter's textfile collector.

The collector reads `*.prom` at any time (prometheus/node_exporter, `README.md`, "Textfile Collector"), so the file is
written atomically. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ops.outputs.rows import Row
from ops.stack.errors import CommandError, WrongUsageError
from ops.stack.stack_document import replace_file
from ops.world.cluster_state import MountedVersion, by_identity
from ops.world.compared_identities import ManagedIdentityRow

_SUFFIX: Final = ".prom"
_LABELS: Final = ("stack", "cluster", "identity")
_READABLE: Final = 0o644  # node_exporter runs as another user


def render(
    stack: str,
    rows: Sequence[Row],
    managed: Sequence[ManagedIdentityRow],
    mounts: Sequence[MountedVersion],
    is_broken: Callable[[str | None, str | None], bool | None],
    now: datetime,
) -> bytes:
    """The metrics of a stack in Prometheus' text format; an identity without a date has none.

    `mounts` is empty if the management cluster was not read. `is_broken` is the doctor's result for an identity of a
    hosted cluster, or (None and None) for the whole stack; unknown results have no metric.
    """
    registry = CollectorRegistry()

    def gauge(name: str, meaning: str, labels: Sequence[str] = _LABELS) -> Gauge:
        return Gauge(f"idstack_status_{name}", meaning, labels, registry=registry)

    gauge("run_seconds", "When idstack status wrote this", ("stack",)).labels(stack).set(now.timestamp())
    expires = gauge("not_after_seconds", "When the certificate expires")
    renews = gauge("renew_after_seconds", "When a renewal becomes due")
    overdue = gauge("renewal_overdue", "1 if the renewal should have happened, else 0")
    signs_in = gauge("signs_in", "1 if each mount signs in and makes its proof call, else 0; only where probes answer")
    wrong = gauge("managed_identity_wrong", "1 if Azure does not have it as the stack created it, else 0")
    old = gauge("mount_is_old", "1 if a pod has mounted another version than the vault's, else 0")
    broken = gauge("broken", "1 if idstack doctor finds its secret, application or roles broken, else 0")
    stack_broken = gauge(
        "stack_broken", "1 if the vault, or the role of the key-vault-user, is broken, else 0", ("stack",)
    )
    if (is_found_broken := is_broken(None, None)) is not None:
        stack_broken.labels(stack).set(is_found_broken)
    for row in rows:
        where = (stack, row.cluster, row.identity)
        if (is_found_broken := is_broken(row.cluster, row.identity)) is not None:
            broken.labels(*where).set(is_found_broken)
        overdue.labels(*where).set(row.is_overdue(now))
        if row.not_after is not None:
            expires.labels(*where).set(row.not_after.timestamp())
        if row.renew_after is not None:
            renews.labels(*where).set(row.renew_after.timestamp())
        if row.probes:
            signs_in.labels(*where).set(row.is_green)
    for managed_identity in managed:
        wrong.labels(stack, managed_identity.cluster, managed_identity.identity).set(managed_identity.is_wrong)
    for (cluster, identity), versions in by_identity(mounts).items():
        states = {version.state for version in versions}
        if states & {"current", "old"}:
            old.labels(stack, cluster, identity).set("old" in states)
    return generate_latest(registry)


def write(file: Path, metrics: bytes) -> None:
    """Write the metrics to a file atomically; raises CommandError if that fails."""
    if file.suffix != _SUFFIX:
        raise WrongUsageError(f"--metrics {file}: node_exporter reads only files with the suffix {_SUFFIX}")
    try:
        replace_file(file, metrics.decode(), mode=_READABLE)
    except OSError as error:
        raise CommandError(
            f"--metrics {file}: {error.strerror or error}; does its directory exist, and can you write to it?"
        ) from None
