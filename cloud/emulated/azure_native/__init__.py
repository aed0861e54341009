"""The azure-native provider for the local cloud; started by `emulated/bin/pulumi-resource-azure-native`."""
