"""The manifest of rules and the tests agree, and the number of open rules only falls."""

import pytest

from tests import requirements
from tests.specification import RULES


def test_no_rule_loses_its_last_test() -> None:
    missing = requirements.unproven(requirements.claims(requirements.TESTS))
    assert len(missing) <= requirements.open_allowed(), (
        f"{len(missing)} rules are open, {requirements.open_allowed()} were: {missing}"
    )


def test_each_rule_that_a_test_claims_exists() -> None:
    assert set(requirements.claims(requirements.TESTS)) - set(RULES) == set()


@pytest.mark.parametrize("rules", [("S0",), ("S46",), ("S1", "R1"), ()])
def test_claiming_an_unknown_rule_is_refused(rules: tuple[str, ...]) -> None:
    with pytest.raises(requirements.UnknownRuleError):
        requirements.requirement(*rules)


def test_claims_are_found_without_running_the_tests() -> None:
    source = """
pytestmark = requirement("S3")

@requirement("S1", "S2")
async def test_one(): ...

@pytest.mark.requirement("S4")
class TestTwo: ...

# requirement("S9") in a comment claims nothing
"""
    assert sorted(requirements.claims_in(source)) == ["S1", "S2", "S3", "S4"]


def test_rules_are_numbered_in_order_and_said_in_one_line() -> None:
    numbers = [int(rule.removeprefix("S")) for rule in RULES]
    assert numbers == sorted(set(numbers))
    assert all(text and "\n" not in text for text in RULES.values())
