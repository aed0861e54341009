"""Every check, in the order in which a fault explains the ones behind it."""

from __future__ import annotations

from typing import Final

from ops.doctor.checks import (
    actions,
    brought_up,
    cluster_access,
    conditions,
    credential_path,
    decryption,
    document,
    driver_mount,
    hosted_cluster,
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
    pending_operations.CHECK,
    decryption.CHECK,
    cluster_access.CHECK,
    settings.CHECK,
    brought_up.CHECK,
    hosted_cluster.CHECK,
    vault.CHECK,
    reader_role.CHECK,
    secret.CHECK,
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
