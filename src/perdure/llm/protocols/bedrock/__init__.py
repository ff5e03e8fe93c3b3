"""The Amazon Bedrock Converse API."""
