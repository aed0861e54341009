"""Constants of HyperShift's API."""

from __future__ import annotations

from typing import Final

API_VERSION: Final = "hypershift.openshift.io/v1beta1"
KIND: Final = "HostedCluster"
# Of a HostedCluster, by namespace and name.
HOSTED_CLUSTER_PATH: Final = f"/apis/{API_VERSION}/namespaces/{{}}/hostedclusters/{{}}"
# What a HostedCluster gives to pods and to services unless it says otherwise (support/globalconfig/network.go and
# api/hypershift/v1beta1/hostedcluster_types.go).
POD_NETWORK: Final = "10.132.0.0/14"
SERVICE_NETWORK: Final = "172.31.0.0/16"
# The hypershift-operator annotates each object of the control plane's namespace that it writes with the HostedCluster,
# as `<namespace>/<name>` (support/k8sutil/constants.go:14,
# hypershift-operator/controllers/hostedcluster/createorupdate_annotation_enforcer.go:31).
CLUSTER_ANNOTATION: Final = "hypershift.openshift.io/cluster"
# The label of the control plane's namespace for the admission of pods, which HyperShift's script for AKS sets
# (contrib/managed-azure/create_basic_hosted_cluster.sh:74); else it is `restricted` or `privileged`, by release
# (hypershift-operator/controllers/hostedcluster/hostedcluster_controller.go:1862-1875).
POD_SECURITY: Final = ("hypershift.openshift.io/pod-security-admission-label-override", "baseline")
