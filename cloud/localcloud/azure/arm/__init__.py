"""Azure Resource Manager of the local cloud: one store of resources, one module per provider namespace."""
