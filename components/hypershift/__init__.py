"""Hosted clusters: the HostedCluster's specification and object, and the component that combines all of its parts."""
