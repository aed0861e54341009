"""Microsoft Graph v1.0, as far as applications, service principals and deleted items go."""
