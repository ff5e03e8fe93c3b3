"""Exported Sessions: what proves that a file is whole and who wrote it.

Here are the hash chain over the records of an export, the signature of its end, and the check of
both. Reading and writing files, and the key of an installation, are in other layers.
"""
