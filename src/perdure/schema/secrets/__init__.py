"""The forms of secrets in text: names of fields, values, tokens of services, command lines."""
