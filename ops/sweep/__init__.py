"""What is left over in Azure of stacks, clusters and principals that are gone."""
