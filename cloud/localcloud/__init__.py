"""Azure and Kubernetes on this machine, as strict as the real ones: a package of its own.

It imports nothing of the project around it, whose local stack is one of its users (decision record 0004).
"""
