"""A permission request as V1 clients get it."""

from perdure.schema.approval.permission import PermissionRequest, ProposedChange
from perdure.schema.ids import PermissionID, SessionID
from perdure.server.v1 import approval


def change(path: str, patch: str) -> ProposedChange:
    return ProposedChange(path=path, status="modified", additions=1, deletions=0, patch=patch)


def asked(*changes: ProposedChange) -> PermissionRequest:
    return PermissionRequest(
        id=PermissionID("per_1"),
        session_id=SessionID("ses_1"),
        action="edit",
        resources=tuple(it.path for it in changes),
        changes=changes,
    )


def test_the_diff_of_an_edit_is_in_the_metadata_where_v1_clients_look() -> None:
    told = approval.permission(asked(change("a.py", "+a\n"), change("b.py", "+b\n")))
    assert told.metadata == {"diff": "+a\n+b\n", "filepath": "a.py, b.py"}


def test_a_request_without_changes_has_no_diff() -> None:
    request = PermissionRequest(
        id=PermissionID("per_1"), session_id=SessionID("ses_1"), action="read", resources=("a",)
    )
    assert approval.permission(request).metadata == {}
