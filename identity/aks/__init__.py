"""Signing in to the API server of an AKS cluster without a person: logins, tokens, their cache, and kubeconfigs."""
