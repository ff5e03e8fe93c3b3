"""Values of the contract in the form of the protocol, and back. Nothing here reads or writes."""
