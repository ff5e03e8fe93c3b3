"""One Provider Turn: boundary, request, streamed answer, tool execution, end of the step."""
