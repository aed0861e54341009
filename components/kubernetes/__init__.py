"""Objects on the management cluster: SecretProviderClasses, configuration documents, probes, user workloads."""
