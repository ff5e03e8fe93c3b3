"""A permission rule in V1."""

from perdure.schema.approval.permission import Effect
from perdure.schema.codec import Record


class V1Rule(Record):
    permission: str
    pattern: str
    action: Effect
