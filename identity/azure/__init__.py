"""Azure Resource Manager, Microsoft Graph and Key Vault: the sign-in of the ARM_* variables, requests, and rights."""
