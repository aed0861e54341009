"""The managed-identity data plane: issues what only Azure's first party can, a managed identity's own certificate."""
