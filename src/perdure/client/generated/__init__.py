"""Client code written by `make generate` from the endpoint table. Do not edit it by hand."""
