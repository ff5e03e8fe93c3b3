"""AG-UI 1.0: `POST /ag-ui` runs a Session and streams what it does. Loaded at the first request."""
