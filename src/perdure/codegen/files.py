"""The generated files of this repository: their names and what must stand in them."""

from typing import Final

from perdure.codegen import (
    openapi_emitter,
    typed_emitter,
    types_emitter,
    typescript_emitter,
    wire_emitter,
)
from perdure.codegen.ir import compile_contract
from perdure.protocol.api import API
from perdure.schema import codec

_CLIENT: Final = "src/perdure/client/generated"
_TYPESCRIPT: Final = "clients/typescript/src/generated"


def generated(version: str) -> dict[str, str]:
    """Path below the repository's root -> content."""
    contract = compile_contract(API)
    document = openapi_emitter.document(contract, title="Perdure", version=version)
    return {
        "docs/openapi.json": codec.pretty(document) + "\n",
        f"{_CLIENT}/types.py": types_emitter.types_module(contract),
        f"{_CLIENT}/failures.py": types_emitter.failures_module(contract),
        f"{_CLIENT}/wire_groups.py": wire_emitter.wire_module(contract),
        f"{_CLIENT}/sync_groups.py": wire_emitter.sync_module(contract),
        f"{_CLIENT}/typed_groups.py": typed_emitter.typed_module(contract),
        f"{_TYPESCRIPT}/types.ts": typescript_emitter.types_module(contract),
        f"{_TYPESCRIPT}/failures.ts": typescript_emitter.failures_module(contract),
        f"{_TYPESCRIPT}/groups.ts": typescript_emitter.groups_module(contract),
    }
