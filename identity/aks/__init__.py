"""The management cluster without a person: logins, tokens and kubeconfigs for its API server, and requests to it."""
