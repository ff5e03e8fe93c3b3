"""All limits of the program, with units and reasons, one module per area.

Names are unambiguous on their own, so a limit is always used as `limits.<NAME>`.
Invariant: no name is defined twice.
"""

from perdure.core.limits.acp import *
from perdure.core.limits.client import *
from perdure.core.limits.location import *
from perdure.core.limits.mcp import *
from perdure.core.limits.provider import *
from perdure.core.limits.session import *
from perdure.core.limits.tool import *
