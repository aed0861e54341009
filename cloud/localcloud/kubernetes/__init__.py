"""A minimal Kubernetes API: enough for the official Python client, kubectl, the kubernetes plugin and the kubelet.

Left out on purpose: admission plugins, RBAC enforcement (the one bearer token may do everything), finalizers that block
a deletion, API aggregation, custom resource definitions at run time (the kinds are those of `kinds.yaml`).
A real kube-apiserver takes its place where those matter.
"""
