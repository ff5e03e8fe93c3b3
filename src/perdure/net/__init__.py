"""Network formats shared by client, server and model calls: HTTP values, SSE, data URIs, loopback.

Pure values and codecs. Opening a connection is `host.http` or `server.http`.
"""
