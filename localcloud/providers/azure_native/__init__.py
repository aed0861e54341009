"""The azure-native provider for the local cloud; started by `providers/bin/pulumi-resource-azure-native`."""
