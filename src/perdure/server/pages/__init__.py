"""Pages beside the contract: the web page, the description of the contract, the metrics."""
