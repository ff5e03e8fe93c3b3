"""A planted bug: a defect with a name, made in one symbol of the package while it is imported."""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tests.harness.planting.edit import Edit, PlantingError, planted


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    name: str
    symbol: str
    """Below the package, as in `store.log.event_store:EventStore.append`."""
    edit: Edit

    @property
    def module(self) -> str:
        return f"perdure.{self.symbol.partition(':')[0]}"

    def compiled(self, source: str, path: str) -> CodeType:
        """The module with the defect in it; PlantingError if its source has changed too much."""
        tree = planted(source, self.symbol.partition(":")[2], self.edit)
        return compile(tree, path, "exec", dont_inherit=True)


def plant(defect: Defect) -> None:
    """Make the module of the defect be imported with it. Nothing has imported it before."""
    if defect.module in sys.modules:
        raise PlantingError(f"{defect.module} is imported already")
    sys.meta_path.insert(0, _PlantingFinder(defect))


class _PlantingFinder(MetaPathFinder):
    def __init__(self, defect: Defect) -> None:
        self._defect = defect

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._defect.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise PlantingError(f"there is no module {fullname}; point the planted bug at another")
        spec.loader = _PlantedLoader(fullname, spec.origin, self._defect)
        return spec


class _PlantedLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, defect: Defect) -> None:
        super().__init__(fullname, path)
        self._defect = defect

    def get_code(self, fullname: str) -> CodeType:
        # Not from the cached bytecode, which is that of the module without its defect.
        path = self.get_filename(fullname)
        return self._defect.compiled(importlib.util.decode_source(self.get_data(path)), path)
