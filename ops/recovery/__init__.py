"""Settles an interrupted `up`: finds orphans, which exist in the cloud but not in the state.

A killed engine leaves pending creates in the state. An engine whose plugin or connection broke drops them: for it the
operation failed, also if the request succeeded. So pending operations are not read. An orphan is a resource that a
preview would create although it exists: it is found by the id that its inputs determine, or by the stack's tag, and
entered into the state as the engine would have done.
"""
