"""A loop that stalls is logged with the place, and counted; an idle or busy loop is not."""

import subprocess
import sys
import textwrap

PROGRAM = """
    import asyncio, logging, re, time
    from perdure.host.loop_watchdog import LoopWatchdog

    def hold_the_loop(seconds):
        time.sleep(seconds)

    def search_for_long():
        # One call that runs no Python code for longer than the limit, on any machine.
        started, length = time.monotonic(), 20
        while time.monotonic() - started < 0.3:
            re.fullmatch("(a|b|ab)*c", "ab" * length)
            length += 1

    async def main():
        stalls = []
        with watchdog.watching(lambda: stalls.append(1)):
            await asyncio.sleep(0.3)  # Idle for longer than the limit: no stall.
            for _ in range(200):
                hold_the_loop(0.002)
                await asyncio.sleep(0)
            print("busy:", len(stalls))
            hold_the_loop(0.3)
            await asyncio.sleep(0)
            print("held:", len(stalls))
            search_for_long()
            await asyncio.sleep(0)
            print("searched:", len(stalls))
        hold_the_loop(0.3)
        await asyncio.sleep(0)
        print("after:", len(stalls))

    logging.basicConfig(format="%(message)s")
    watchdog = LoopWatchdog(seconds_max=0.1)
    with asyncio.Runner(loop_factory=watchdog.make_loop) as runner:
        runner.run(main())
"""


def test_a_stall_is_logged_with_its_stack_and_counted() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    busy, *rest = ended.stdout.splitlines()
    already = int(busy.removeprefix("busy: "))  # 0, unless the machine stood still
    assert rest == [f"held: {already + 1}", f"searched: {already + 2}", f"after: {already + 2}"]
    held, searched = ended.stderr.splitlines()[-2:]
    assert held.startswith("the event loop stalled for ")
    assert "hold_the_loop (<string>:" in held
    assert "search_for_long (<string>:" in searched
