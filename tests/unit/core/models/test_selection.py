"""Which model is used when none was chosen."""

from typing import Final

import pytest

from perdure.core.config_file.entries import Status
from perdure.core.models import selection
from perdure.core.models.catalog import CatalogModel
from perdure.core.models.transport import NATIVE, Api, BuiltIn, ModelTransport, Unreachable
from perdure.schema.models.model import CacheCost, ModelCapabilities, ModelCost, ModelLimit

NOW: Final = 1_800_000_000_000
MONTH: Final = 30 * 86_400_000


def model(
    id: str,
    *,
    months: float = 1,
    price: float = 1,
    transport: ModelTransport = NATIVE,
    output: str = "text",
    tools: bool = True,
    status: Status = "active",
    provider: str = "p",
) -> CatalogModel:
    return CatalogModel(
        id=id,
        provider_id=provider,
        name=id,
        wire_name=id,
        api=Api(),
        transport=transport,
        capabilities=ModelCapabilities(tools=tools, input=("text",), output=(output,)),
        limit=ModelLimit(context=1, output=1),
        released=NOW - round(months * MONTH),
        cost=(ModelCost(input=price, output=0, cache=CacheCost(read=0, write=0)),) if price else (),
        status=status,
    )


@pytest.mark.parametrize(
    ("models", "chosen"),
    [
        ([], None),
        ([model("old", months=2), model("new")], "new"),
        ([model("image", output="image"), model("old", months=9)], "old"),
        ([model("plain", tools=False), model("old", months=9)], "old"),
        ([model("plain", tools=False)], "plain"),
        ([model("retired", status="deprecated"), model("old", months=9)], "old"),
        ([model("far", transport=Unreachable("why")), model("old", months=9)], "old"),
        ([model("far", transport=Unreachable("why"))], None),
        ([model("demo", transport=BuiltIn("x")), model("old", months=9)], "old"),
        ([model("demo", transport=BuiltIn("x"))], "demo"),
    ],
)
def test_a_conversation_begins_with_the_newest_model_that_can_hold_it(
    models: list[CatalogModel], chosen: str | None
) -> None:
    found = selection.newest(models)
    assert (found and found.id) == chosen


@pytest.mark.parametrize(
    ("models", "chosen"),
    [
        ([], None),
        ([model("big", price=1), model("x-mini", price=5)], "x-mini"),
        ([model("a-mini", price=5), model("b-flash", price=1)], "b-flash"),
        ([model("a-mini", months=17), model("b-mini", months=1)], "b-mini"),
        ([model("a-mini", months=1, price=5), model("b-mini", months=17, price=1)], "b-mini"),
        ([model("big", price=2), model("bigger", price=3)], "big"),
        ([model("a-mini", price=0), model("big", price=9)], "big"),
        ([model("a-mini", months=19)], None),
        ([model("a-mini", months=-1)], None),
        ([model("a-mini", output="image")], None),
        ([model("a-mini", status="beta")], None),
        ([model("a-mini", transport=Unreachable("why"))], None),
        ([model("a-mini", provider="azure")], None),
        (
            [
                model("a-mini", price=1, provider="opencode"),
                model("gpt-5-nano", price=9, provider="opencode"),
            ],
            "gpt-5-nano",
        ),
    ],
)
def test_work_beside_the_conversation_is_done_by_a_cheap_recent_model(
    models: list[CatalogModel], chosen: str | None
) -> None:
    found = selection.small(models, now_millis=NOW)
    assert (found and found.id) == chosen
