"""Signing in to Azure and to the API server of an AKS cluster without a person: logins, tokens, kubeconfigs."""
