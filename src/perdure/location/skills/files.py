"""The skills below one directory, read again only when something changed.

A listing is cached with the signatures of all directories and files that it saw; while they are
unchanged, the next one costs a stat for each. location.skills.scan finds the files,
core.skills.skill reads one.

Invariant: a file that cannot be used is left out and logged once for each version of it; one that
cannot be read at the moment keeps its last known content.
"""

import logging
from collections.abc import Mapping

from perdure.core import limits
from perdure.core.files.paths import printable
from perdure.core.skills import skill
from perdure.core.skills.skill import SkillError
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError, Signature
from perdure.location.skills import scan as skill_scan
from perdure.location.skills.scan import FoundFile, NameOf, Scan
from perdure.ports import Clock
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)


class _File(Value):
    signature: Signature
    is_settled: bool
    skill: SkillInfo | None


class _Listing(Value, kw_only=True):
    skills: tuple[SkillInfo, ...]
    signatures: Mapping[str, Signature | None]
    is_settled: bool
    """Whether any later change must change a signature."""


class SkillFiles:
    """The skills of one directory. Files whose real path is not in `within` are refused."""

    def __init__(
        self,
        directory: str,
        *,
        clock: Clock,
        within: str | None = None,
        name_of: NameOf = skill_scan.authored_name,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._within = within
        self._name_of = name_of
        self._last: _Listing | None = None
        self._is_known = False
        self._files: dict[str, _File] = {}
        self._reported: dict[str, tuple[Signature | None, str]] = {}

    @property
    def is_known(self) -> bool:
        """Whether the last scan could look at everything."""
        return self._is_known

    def list(self) -> tuple[SkillInfo, ...]:
        """The current skills; the same tuple object while nothing changes."""
        last = self._last
        if last is not None and last.is_settled and _is_unchanged(last.signatures):
            return last.skills
        self._last = self._scan(() if last is None else last.skills)
        return self._last.skills

    def _scan(self, before: tuple[SkillInfo, ...]) -> _Listing:
        scan = Scan(self._directory, within=self._within, name_of=self._name_of)
        files = {found.path: self._file(found, scan) for found in scan.files()}
        for path, problem in scan.problems.items():
            self._report(path, scan.signatures.get(path), problem)
        self._is_known = scan.is_complete
        self._files = files if scan.is_complete else self._files | files
        read = (self._files[path].skill for path in sorted(self._files))
        skills = tuple(found for found in read if found is not None)
        return _Listing(
            skills=before if skills == before else skills,
            signatures=scan.signatures,
            is_settled=scan.is_complete and all(map(self._is_settled, scan.signatures.values())),
        )

    def _file(self, found: FoundFile, scan: Scan) -> _File:
        kept = self._files.get(found.path)
        if kept is not None and kept.is_settled and kept.signature == found.signature:
            return kept
        settled = self._is_settled(found.signature)
        try:
            return _File(found.signature, settled, _read(found))
        except SkillError as error:
            self._report(found.path, found.signature, f"is left out: {error}")
            return _File(found.signature, settled, None)
        except OSError as error:
            scan.report_unreadable(found.path, error)
            return _File(found.signature, False, None if kept is None else kept.skill)

    def _is_settled(self, signature: Signature | None) -> bool:
        """Whether the last change is old enough that the next one gets another timestamp."""
        if signature is None:
            return True
        age_millis = self._clock.now_millis() - signature[0] // 1_000_000
        return abs(age_millis) > limits.SKILL_SETTLED_SECONDS * 1000

    def _report(self, path: str, signature: Signature | None, problem: str) -> None:
        if self._reported.get(path) != (signature, problem):
            self._reported[path] = signature, problem
            logger.warning("skills: %s %s", printable(path), problem)


def _is_unchanged(signatures: Mapping[str, Signature | None]) -> bool:
    try:
        return all(cached_files.signature(path) == before for path, before in signatures.items())
    except OSError:
        return False


def _read(found: FoundFile) -> SkillInfo | None:
    try:
        found.path.encode()
    except UnicodeEncodeError as error:
        raise SkillError("its path is not UTF-8") from error
    try:
        data = cached_files.read(found.path, bytes_max=limits.SKILL_FILE_BYTES_MAX)
    except FileTooLargeError as error:
        most = limits.SKILL_FILE_BYTES_MAX
        raise SkillError(f"it is larger than {most} bytes") from error
    return None if data is None else skill.read(found.path, data, name=found.name)
