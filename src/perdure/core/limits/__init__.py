"""Every bound in the program, with its unit and its reason, in modules by what they bound.

Each name says it by itself, so that a limit is used as `limits.<NAME>`, wherever it stands.
Invariant: no name is given twice.
"""

from perdure.core.limits.client import *
from perdure.core.limits.location import *
from perdure.core.limits.provider import *
from perdure.core.limits.session import *
from perdure.core.limits.tool import *
