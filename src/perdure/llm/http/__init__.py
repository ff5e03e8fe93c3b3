"""One model call over HTTP: the request, the stream of events, and errors by kind."""
