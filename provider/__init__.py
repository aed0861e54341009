"""The project's own provider plugin, `idstack`: schedules, certificates, gates, secrets.

The engine starts `pulumi-resource-idstack` (Pulumi.yaml names this folder). Rules and cryptography are in
`identity.credentials`; here they become Check, Diff, Create, Update.
"""
