"""Certificates, credential documents, renewal schedule and sign-in of an identity that proves itself by a certificate.

This package also runs alone in a pod (`python -m identity.credentials.probe`): it imports nothing else of this program.
"""
