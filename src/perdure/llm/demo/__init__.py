"""The built-in offline model `demo/demo`: a script that drives the real runtime and tools."""
