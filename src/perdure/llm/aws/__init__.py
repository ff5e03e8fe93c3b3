"""AWS request signing and the AWS event stream encoding."""
