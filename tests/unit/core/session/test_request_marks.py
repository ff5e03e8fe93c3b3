"""What is done about a request that a crash cut off, and when it is paid for."""

import pytest

from perdure.core import limits
from perdure.core.config_file.substitution import Trust
from perdure.core.models import selection
from perdure.core.models.catalog import CatalogModel, host_provider, local_provider
from perdure.core.session import recovery
from perdure.core.session.recovery import (
    AskPerson,
    Attempt,
    GiveUp,
    NothingDue,
    SendRequest,
    Unclear,
    Verdict,
)
from perdure.core.settings import document as config_document
from perdure.core.settings import settings
from perdure.core.settings.document import Document
from perdure.schema.codec import JsonValue
from perdure.schema.models.model import CacheCost, ModelCost
from perdure.testing import ScriptedModel
from tests.requirements import requirement

TOO_MANY = limits.RECOVERY_DEATHS_MAX


@requirement("S70", "S189")
@pytest.mark.parametrize(
    ("attempt", "verdict"),
    [
        (None, NothingDue()),
        (Attempt(state="begun", step=1), NothingDue()),
        (Attempt(state="prepared", step=1), SendRequest(1)),
        (Attempt(state="settled", step=4), SendRequest(4)),
        (Attempt(state="dispatched", step=2), Unclear(2)),
        # Something new was said: what never went out still goes out, and is heard together with it.
        (Attempt(state="prepared", step=1, abandoned=True), SendRequest(1)),
        (Attempt(state="settled", step=3, abandoned=True), SendRequest(3)),
        (Attempt(state="dispatched", step=2, abandoned=True), GiveUp()),
        # Once somebody is asked, only they decide, whatever it was that they are asked about.
        (Attempt(state="dispatched", step=2, waits="unclear"), AskPerson("unclear")),
        (Attempt(state="prepared", step=2, waits="deaths"), AskPerson("deaths")),
        (Attempt(state="prepared", step=2, waits="deaths", abandoned=True), GiveUp()),
        (Attempt(state="dispatched", step=2, waits="unclear", abandoned=True), GiveUp()),
        # A few deaths may be anybody's fault. More look like a cause.
        (Attempt(state="prepared", step=1, deaths=TOO_MANY - 1), SendRequest(1)),
        (Attempt(state="dispatched", step=1, deaths=TOO_MANY - 1), Unclear(1)),
        (Attempt(state="begun", step=1, deaths=TOO_MANY), AskPerson("deaths")),
        (Attempt(state="prepared", step=1, deaths=TOO_MANY), AskPerson("deaths")),
        (Attempt(state="settled", step=1, deaths=TOO_MANY + 5), AskPerson("deaths")),
        (Attempt(state="dispatched", step=1, deaths=TOO_MANY), AskPerson("deaths")),
        (Attempt(state="begun", step=1, deaths=TOO_MANY, abandoned=True), GiveUp()),
    ],
)
def test_what_a_crash_left_has_one_verdict(attempt: Attempt | None, verdict: Verdict) -> None:
    assert recovery.classify(attempt) == verdict


def model(url: str = "https://api.example.com", *prices: float) -> CatalogModel:
    found = local_provider("example", url, {"m": 0}).models["m"]
    free = CacheCost(read=0, write=0)
    costs = tuple(ModelCost(input=price, output=price, cache=free) for price in prices)
    return CatalogModel(
        id=found.id,
        provider_id=found.provider_id,
        name=found.name,
        wire_name=found.wire_name,
        api=found.api,
        reach=found.reach,
        capabilities=found.capabilities,
        limit=found.limit,
        cost=costs,
    )


@pytest.mark.parametrize(
    ("asked", "free"),
    [
        (model(), False),
        (model("https://api.example.com", 3.0), False),
        (model("https://api.example.com", 0.0), True),
        (model("https://api.example.com", 0.0, 3.0), False),
        (model("http://127.0.0.1:11434/v1", 3.0), True),
        (model("http://127.1.2.3/v1"), True),
        (model("http://[::1]:8080"), True),
        (model("http://localhost:1234"), True),
        (model("http://localhost.example.com"), False),
        (model("http://192.168.0.7:11434"), False),
        (model("http://[broken"), False),
        (host_provider("own", {"m": ScriptedModel()}).models["m"], True),
    ],
)
def test_a_request_is_free_when_that_is_known(asked: CatalogModel, free: bool) -> None:
    assert selection.is_free(asked) is free


def document(policy: JsonValue, trust: Trust) -> Document:
    return config_document.read("opencode.json", trust, {"experimental": {"recovery": policy}})


def test_only_the_user_says_what_is_sent_twice() -> None:
    merged = settings.merge((document("abandon", "user"), document("retry", "project")))
    assert merged.recovery == "abandon"
    assert ["recovery" in problem.message for problem in merged.problems] == [True]
    assert settings.merge((document("retry", "project"),)).recovery is None


@pytest.mark.parametrize("wrong", ["always", "", 1, None, ["retry"], {"policy": "retry"}])
def test_a_policy_that_makes_no_sense_is_told_and_changes_nothing(wrong: JsonValue) -> None:
    merged = settings.merge((document(wrong, "user"),))
    assert merged.recovery is None
    assert len(merged.problems) == 1
