"""The azuread provider for the local cloud; started by `providers/bin/pulumi-resource-azuread`."""
