"""What a model means to do in a Session, item by item, as it last said."""

from perdure.schema.codec import Record


class Todo(Record):
    """One item. Status and priority are words of the model's own choosing."""

    content: str
    status: str
    priority: str


Todos = tuple[Todo, ...]
"""The whole list, in order. A new list takes the place of the one before."""
