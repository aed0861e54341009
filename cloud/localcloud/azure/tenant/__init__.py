"""The Entra ID tenant: its applications, principals, people and groups, and the tokens that are issued to them."""
