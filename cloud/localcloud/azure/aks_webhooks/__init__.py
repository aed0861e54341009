"""AKS's webhooks for kube-apiserver: authentication of Entra ID's tokens and Azure RBAC for Kubernetes."""
