"""Azure Resource Manager of the local cloud: one store of resources, one small file per provider namespace."""
