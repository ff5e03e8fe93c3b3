"""The todo list of a Session, as its model last wrote it."""

from perdure.schema.codec import Record


class Todo(Record):
    """One item. Status and priority are free text of the model."""

    content: str
    status: str
    priority: str


Todos = tuple[Todo, ...]
"""The whole list, in order. A new list replaces the previous one."""
