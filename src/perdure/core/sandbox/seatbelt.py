"""A policy as a profile of sandbox-exec, the sandbox of macOS.

Of several rules that match, the last one decides, so outer places come first.
"""

from perdure.core.sandbox.policy import SandboxPolicy

_ALWAYS_WRITABLE = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def make_profile(policy: SandboxPolicy) -> str:
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    lines += [f"(allow file-write* (literal {_quote(path)}))" for path in _ALWAYS_WRITABLE]
    for place in policy.places:
        matched = f"(subpath {_quote(place.path)})"
        match place.access:
            case "write" | "keep":
                lines.append(f"(allow file-read* file-write* {matched})")
            case "read" | "reserve":
                lines.append(f"(allow file-read* {matched})")
                lines.append(f"(deny file-write* {matched})")
            case "hide":
                lines.append(f"(deny file-read* file-write* {matched})")
    if not policy.network:
        lines += [
            "(deny network*)",
            '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))',
        ]
    lines += [
        # Other processes, and programs that act for a command, are out of reach.
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny process-info*)",
        "(allow process-info* (target same-sandbox))",
        "(deny appleevent-send)",
        "(deny job-creation)",
    ]
    return "\n".join(lines) + "\n"


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
