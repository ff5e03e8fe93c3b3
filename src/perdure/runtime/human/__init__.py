"""Permission requests and questions across processes, as clients list and answer them."""
