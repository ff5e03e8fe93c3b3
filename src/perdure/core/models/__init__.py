"""Models and providers: facts, configuration, access, options and transports.

`catalog` combines known facts with the configuration; `transport` maps a provider package to a wire
protocol; `access`, `aws` and `vertex` find address and credentials. Calling a model is
`location.models`; wire formats are `llm.protocols`.
"""
