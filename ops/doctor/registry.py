"""Every check, in the order in which a fault explains the ones behind it."""

from __future__ import annotations

from typing import Final

from ops.doctor.checks import (
    abandoned_lock,
    actions,
    brought_up,
    cluster_access,
    conditions,
    credential_path,
    decryption,
    document,
    driver_mount,
    hosted_cluster,
    last_run,
    lock,
    pending_operations,
    pod_runs,
    pod_volume,
    proof_call,
    reader_role,
    registration,
    role,
    secret,
    secret_provider_class,
    secret_reader,
    secret_rotation,
    settings,
    sign_in,
    stack_state,
    vault,
)
from ops.doctor.model.check import Check

CHECKS: Final[tuple[Check, ...]] = (
    stack_state.CHECK,
    lock.CHECK,
    abandoned_lock.CHECK,
    pending_operations.CHECK,
    last_run.CHECK,
    decryption.CHECK,
    cluster_access.CHECK,
    settings.CHECK,
    brought_up.CHECK,
    hosted_cluster.CHECK,
    vault.CHECK,
    reader_role.CHECK,
    secret.CHECK,
    secret_reader.CHECK,
    secret_provider_class.CHECK,
    secret_rotation.CHECK,
    driver_mount.CHECK,
    pod_volume.CHECK,
    pod_runs.CHECK,
    credential_path.CHECK,
    document.CHECK,
    registration.CHECK,
    sign_in.CHECK,
    role.CHECK,
    actions.CHECK,
    proof_call.CHECK,
    conditions.CHECK,
)

# What `status`, `graph` and the metrics look at besides their own tables: all that they take is what a Reader may
# read of the backend and of Azure. Whether pods mount, load and sign in is in the tables.
STATUS_CHECKS: Final[tuple[Check, ...]] = (
    abandoned_lock.CHECK,
    pending_operations.CHECK,
    last_run.CHECK,
    vault.CHECK,
    reader_role.CHECK,
    secret.CHECK,
    secret_reader.CHECK,
    registration.CHECK,
    role.CHECK,
)
