"""Requests to Azure Resource Manager, Microsoft Graph and Key Vault, and whom the environment signs in there."""
