"""Key Vault of the local cloud: the vaults' content, and the data plane that clients read and write it through."""
