"""Asks for a run of a Session, durably, in the transaction of what asks for it.

The request is a row that says that a run is owed (store.tables.attempt_table). Waking the Session
after the commit is only a hint: whichever process runs it next, at once or after a crash, finds the
row. Without one a wake runs nothing.
"""

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.processes import wake_table
from perdure.store.processes.leases import Holder, Leases
from perdure.store.tables import attempt_table


async def request_run(tx: Transaction, leases: Leases, session_id: SessionID) -> Holder:
    """A run is owed from now on. Returns which process has the Session's lease."""
    # In the same transaction: this process may die before it wakes the Session.
    await leases.register_process(tx)
    await attempt_table.owe(tx, session_id)
    holder = await leases.holder(tx, session_id)
    if holder == "other":
        await wake_table.request(tx, session_id)
    elif holder == "free":
        # A process that starts right now would take the run for one that was left behind.
        await leases.hold_within(tx, session_id)
    return holder
