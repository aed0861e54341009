"""The blob data plane of storage accounts: what is stored, who may read and write it, how it answers."""
