"""A real Kubernetes control plane instead of the built-in API: etcd, kube-apiserver, kube-controller-manager.

`python -m localcloud start --cluster apiserver` chooses it, once per local cloud. Admission, RBAC, custom
resource definitions with their CEL rules, strict validation, namespace deletion, service accounts and garbage
collection are then the real ones. Two things stay the local kubelet's: it has no scheduler beside it, because there is
one node, and it keeps Deployments, their ReplicaSets and pods itself.
"""
