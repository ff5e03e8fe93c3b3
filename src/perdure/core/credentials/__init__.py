"""Keys and logins: which one may be sent where, and the OAuth and Google token exchanges as data.

Storing secrets is `host.credentials`; renewing tokens is `location.models.credentials`.
"""
