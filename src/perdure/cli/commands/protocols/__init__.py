"""Commands that another program starts, and speaks a protocol with over stdin and stdout."""
