"""The azuread provider for the local cloud; started by `emulated/bin/pulumi-resource-azuread`."""
