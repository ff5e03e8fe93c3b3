"""Builds a session with a long history."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def clone_turns(database: Path, session: str, turns: int) -> None:
    """Adds `turns` copies of the last text turn of `session` to an opencode SQLite database.

    Every row of the turn (events, projected messages, prompt input) is copied with new ids and the
    following sequence numbers, so the result is what that many real turns would have left. It is
    used because real opencode takes hours for thousands of real turns.
    """
    db = sqlite3.connect(database, timeout=30)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA foreign_keys=OFF")
    last = db.execute(
        "SELECT * FROM session_input WHERE session_id=? ORDER BY admitted_seq DESC LIMIT 1",
        (session,),
    ).fetchone()
    start = last["admitted_seq"]
    events = db.execute(
        "SELECT * FROM event WHERE aggregate_id=? AND seq>=? ORDER BY seq", (session, start)
    ).fetchall()
    messages = db.execute(
        "SELECT * FROM session_message WHERE session_id=? AND seq>=? ORDER BY seq", (session, start)
    ).fetchall()
    length = events[-1]["seq"] - start + 1
    if [event["seq"] for event in events] != list(range(start, start + length)):
        raise RuntimeError("the last turn is not contiguous")
    olds = [message["id"] for message in messages]

    def insert(table: str, row: dict) -> None:
        names = ",".join(row)
        db.execute(
            f"INSERT INTO {table} ({names}) VALUES ({','.join('?' * len(row))})", list(row.values())
        )

    with db:
        db.execute("BEGIN IMMEDIATE")
        base = db.execute("SELECT count(*) FROM event").fetchone()[0]
        for copy in range(1, turns + 1):
            shift = copy * length
            renamed = {
                old: f"{old[:16]}s{base + copy:07d}{old[24:]}x{i}"[:30]
                for i, old in enumerate(olds)
            }

            def swap(text: str) -> str:
                for old, new in renamed.items():
                    text = text.replace(old, new)
                return text

            for event in events:
                row = dict(event)
                row["id"] = f"{event['id'][:16]}s{base + copy:07d}{event['seq'] - start:06d}"[:30]
                row["seq"] += shift
                row["data"] = swap(row["data"])
                insert("event", row)
            for message in messages:
                row = dict(message)
                row["id"], row["seq"] = renamed[row["id"]], row["seq"] + shift
                row["data"] = swap(row["data"])
                insert("session_message", row)
            row = dict(last)
            row["id"] = renamed.get(row["id"], row["id"] + str(copy))
            row["admitted_seq"] += shift
            row["promoted_seq"] += shift
            insert("session_input", row)
        db.execute(
            "UPDATE event_sequence SET seq=seq+? WHERE aggregate_id=?", (turns * length, session)
        )
    db.close()
