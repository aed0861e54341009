"""What a repository and Azure need so that pipelines preview, bring up and renew stacks."""
