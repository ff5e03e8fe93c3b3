"""The commands about the Model Context Protocol: our servers, and this program as one."""
