"""Defects in the rules for files that the tests of tools must find: each an edit of one symbol."""

from dataclasses import dataclass
from typing import Final

from tests.harness.planting.defect import Defect
from tests.harness.planting.edit import Before, Instead


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRuleBug(Defect):
    found_by: str
    """The test that must fail, as pytest selects it."""


_ONE_RULE: Final = "tests/contract/tools/files/test_one_rule.py"
_PROTECTED: Final = "tests/contract/tools/files/test_protected_paths.py"
_LOCATION: Final = "tests/contract/location/approval/test_location_rules.py"
FILE_RULE_BUGS: Final = (
    FileRuleBug(
        name="a subagent is judged by its own rules alone",
        symbol="location.approval.location_rules:LocationRules.judge",
        edit=Before("above = ()"),
        found_by=f"{_ONE_RULE}::test_a_subagent_may_not_do_unasked_what_its_callers_must_ask_for",
    ),
    FileRuleBug(
        name="a search shows lines of files that may not be read",
        symbol="tools.files.file_permissions:FileView.is_shown",
        edit=Instead("return True"),
        found_by=f"{_ONE_RULE}::test_every_tool_and_spelling_gives_one_decision_for_one_file",
    ),
    FileRuleBug(
        name="a rule that names a link does not hold behind it",
        symbol="core.approval.file_names:restrict_real_paths",
        edit=Instead("return rules"),
        found_by=f"{_ONE_RULE}::test_a_denied_file_is_not_shown_however_the_rule_names_it",
    ),
    FileRuleBug(
        name="an edit tells what a file holds that may not be read",
        symbol="tools.files.file_permissions:FilePermissions.require_used",
        edit=Instead("return"),
        found_by=f"{_ONE_RULE}::test_a_denied_file_is_not_shown_however_the_model_names_it",
    ),
    FileRuleBug(
        name="a protected file is asked about like any other",
        symbol="core.approval.protected_paths:find_protection",
        edit=Instead("return None"),
        found_by=f"{_PROTECTED}::test_a_link_does_not_hide_what_is_protected",
    ),
    FileRuleBug(
        name="a rule of the project unlocks a protected file",
        symbol="location.approval.location_rules:Judge._is_named",
        edit=Instead("return True"),
        found_by=f"{_LOCATION}::test_a_protected_file_needs_a_rule_of_the_user_that_names_it",
    ),
)
