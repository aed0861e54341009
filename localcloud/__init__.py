"""Azure and Kubernetes on this machine: the services the local stack talks to, as strict as the real ones.

Nothing here is imported by the program, the components or the provider; it imports `identity` for constants alone.
"""
