"""The project's own provider plugin, `idstack`: renewal schedules, certificates and sign-in gates as real resources.

The engine starts `pulumi-resource-idstack` (Pulumi.yaml names this folder). Rules and cryptography are in
`identity.credentials`; here they become Check, Diff, Create, Update.
"""
