"""Asks for a device code, and then whether the person has finished.

The requests and answers are core.credentials.device_login.
"""

from collections.abc import Callable, Mapping

from perdure.core.credentials import device_login
from perdure.core.credentials.device_login import DeviceCode, NotYet
from perdure.core.credentials.oauth import LoginMethod, Tokens, TokensRefused
from perdure.location.models.credentials import send_login_request
from perdure.net.transport import HttpTransport
from perdure.ports import Clock


async def request_code(
    transport: HttpTransport, method: LoginMethod, inputs: Mapping[str, str]
) -> DeviceCode | TokensRefused:
    answer = await send_login_request(transport, device_login.code_request(method, inputs))
    if isinstance(answer, TokensRefused):
        return answer
    status, body = answer
    return device_login.read_code(status=status, body=body)


async def wait_for_tokens(
    transport: HttpTransport,
    clock: Clock,
    method: LoginMethod,
    code: DeviceCode,
    *,
    is_open: Callable[[], bool],
) -> Tokens | TokensRefused | None:
    """Ask until the person has finished or the provider refuses; None if `is_open` ends it."""
    interval = code.interval
    while True:
        await clock.sleep(interval)
        if not is_open():
            return None
        request = device_login.poll_request(method, code)
        answer = await send_login_request(transport, request)
        if isinstance(answer, TokensRefused):
            # The network may come back before the code expires.
            continue
        status, body = answer
        read = device_login.read_poll(
            status=status, body=body, now=clock.now_millis(), interval=interval
        )
        if isinstance(read, NotYet):
            interval = read.interval
        elif isinstance(read, Tokens) or read.final:
            return read
