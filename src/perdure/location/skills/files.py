"""The skills below one directory, read once and then only looked at.

A look is remembered by the signatures of all directories and files that it saw; while they stay,
the next one costs a stat for each. Which files those are is location.skills.scan; what a file must
hold to be a skill is core.skills.skill.

Invariant: a file that cannot be used is left out and reported once for each version of it; one that
cannot be looked at is as it was when it last could.
"""

import logging
from collections.abc import Mapping

from perdure.core import limits
from perdure.core.skills import skill
from perdure.core.skills.skill import SkillError
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError, Signature
from perdure.location.skills import scan as skill_scan
from perdure.location.skills.scan import FoundFile, NameOf, Scan
from perdure.ports import Clock
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.value import Value
from perdure.tools.environment import printable

logger = logging.getLogger(__name__)


class _File(Value):
    signature: Signature
    is_settled: bool
    skill: SkillInfo | None


class _Look(Value, kw_only=True):
    skills: tuple[SkillInfo, ...]
    signatures: Mapping[str, Signature | None]
    is_settled: bool
    """Whether every change since shows in a signature."""


class SkillFiles:
    """One directory of skills. Files whose real path is not `within` are refused."""

    def __init__(
        self,
        directory: str,
        *,
        clock: Clock,
        within: str | None = None,
        name_of: NameOf = skill_scan.authored,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._within = within
        self._name_of = name_of
        self._last: _Look | None = None
        self._is_known = False
        self._files: dict[str, _File] = {}
        self._reported: dict[str, tuple[Signature | None, str]] = {}

    @property
    def is_known(self) -> bool:
        """Whether a look has ever succeeded. Until then it is not known what is there."""
        return self._is_known

    def look(self) -> tuple[SkillInfo, ...]:
        """The skills that are there now; the same tuple as long as they stay the same."""
        last = self._last
        if last is not None and last.is_settled and _stays(last.signatures):
            return last.skills
        self._last = self._scanned(() if last is None else last.skills)
        return self._last.skills

    def _scanned(self, before: tuple[SkillInfo, ...]) -> _Look:
        scan = Scan(self._directory, within=self._within, name_of=self._name_of)
        files = {found.path: self._file(found, scan) for found in scan.files()}
        for path, problem in scan.problems.items():
            self._report(path, scan.signatures.get(path), problem)
        self._is_known = self._is_known or scan.is_open
        self._files = files if scan.is_complete else self._files | files
        read = (self._files[path].skill for path in sorted(self._files))
        skills = tuple(found for found in read if found is not None)
        return _Look(
            skills=before if skills == before else skills,
            signatures=scan.signatures,
            is_settled=scan.is_complete and all(map(self._settled, scan.signatures.values())),
        )

    def _file(self, found: FoundFile, scan: Scan) -> _File:
        kept = self._files.get(found.path)
        if kept is not None and kept.is_settled and kept.signature == found.signature:
            return kept
        settled = self._settled(found.signature)
        try:
            return _File(found.signature, settled, _read(found))
        except SkillError as error:
            self._report(found.path, found.signature, f"is left out: {error}")
            return _File(found.signature, settled, None)
        except OSError as error:
            scan.unreadable(found.path, error)
            return _File(found.signature, False, None if kept is None else kept.skill)

    def _settled(self, signature: Signature | None) -> bool:
        """Whether the next change cannot bear the same time as the last one."""
        if signature is None:
            return True
        age_millis = self._clock.now_millis() - signature[0] // 1_000_000
        return abs(age_millis) > limits.SKILL_SETTLED_SECONDS * 1000

    def _report(self, path: str, signature: Signature | None, problem: str) -> None:
        if self._reported.get(path) != (signature, problem):
            self._reported[path] = signature, problem
            logger.warning("skills: %s %s", printable(path), problem)


def _stays(signatures: Mapping[str, Signature | None]) -> bool:
    return all(cached_files.signature(path) == was for path, was in signatures.items())


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
