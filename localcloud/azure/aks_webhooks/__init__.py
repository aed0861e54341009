"""AKS's authentication webhook, which tells kube-apiserver whom a token of Entra ID speaks for."""
