"""The local Azure: Entra ID, Graph, ARM, Key Vault and IMDS over one store, one tenant and one authorization check.

Imports point one way: `shared` <- `tenant` <- `local_azure` <- the services, each a package with an `api` module.
"""
