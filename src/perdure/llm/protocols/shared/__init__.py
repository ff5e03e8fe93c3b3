"""Encodings that several wire protocols share."""
