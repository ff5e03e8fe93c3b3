"""One module for each built-in tool, with its description for the model.

Input and output are Records. A tool asks for permission before any effect and raises `ToolFailure`
for what the model should read. A new tool is added to `register`.
"""
