"""Pulumi's Kubernetes provider, emulated: objects of any kind the API server serves, through a kubeconfig.

Rules are those of pulumi-kubernetes 4.x (`provider/pkg/provider`, `provider/pkg/await`): names, defaults that are no
diff, replacements, waiting for Deployments. Nothing here depends on the local API server but the refusal of any other
one, so a real kube-apiserver can take its place.

Left out on purpose: Helm, Kustomize and YAML resources, Patch and List resources, rendering to files, waiting for kinds
other than Deployment, field managers (updates are JSON merge patches that also undo changes by others).
"""
