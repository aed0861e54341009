"""The credential probe: mounted like a real control-plane pod, it proves continuously that the credential works.

`python -m identity.credentials.probe --help` lists its arguments. It finds the credential the way the real consumer
does, signs in with it, makes one call that the identity's role grants, and reports at `/healthz`, `/readyz` and
`/metrics`.
"""
