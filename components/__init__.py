"""The stack as Pulumi components: one stage of the identity flow per file, its Args and its ComponentResource.

The groups import one way: `azure` <- `kubernetes` <- `hypershift` <- `preflight` <- `stack.py`.
"""
