"""The generated files of this repository, with their content."""

from typing import Final

from perdure.openapi import document as openapi_emitter
from perdure.openapi.contract import compile_contract
from perdure.protocol.api import API
from perdure.schema import codec
from scripts.codegen import typed_client, types_module, typescript_client, wire_client

_CLIENT: Final = "src/perdure/client/generated"
_TYPESCRIPT: Final = "clients/typescript/src/generated"


def generated(version: str) -> dict[str, str]:
    """Return the content of each file, by its path below the repository's root."""
    contract = compile_contract(API)
    document = openapi_emitter.document(contract, title="Perdure", version=version)
    return {
        "docs/openapi.json": codec.pretty(document) + "\n",
        f"{_CLIENT}/types.py": types_module.types_module(contract),
        f"{_CLIENT}/failures.py": types_module.failures_module(contract),
        f"{_CLIENT}/wire_groups.py": wire_client.wire_module(contract),
        f"{_CLIENT}/sync_groups.py": wire_client.sync_module(contract),
        f"{_CLIENT}/typed_groups.py": typed_client.groups_module(contract),
        f"{_CLIENT}/typed_operations.py": typed_client.operations_module(contract),
        f"{_CLIENT}/blocking_groups.py": typed_client.blocking_module(contract),
        f"{_TYPESCRIPT}/types.ts": typescript_client.types_module(contract),
        f"{_TYPESCRIPT}/failures.ts": typescript_client.failures_module(contract),
        f"{_TYPESCRIPT}/groups.ts": typescript_client.groups_module(contract),
    }
