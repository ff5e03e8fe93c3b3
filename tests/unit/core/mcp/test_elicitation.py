"""Forms of MCP servers as questions, and answers as values of the types that a server wants."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.mcp import elicitation
from perdure.core.mcp.elicitation import UnfitAnswerError
from perdure.schema.codec import JsonObject, JsonValue

FIELDS: Final[JsonObject] = {
    "name": {"type": "string", "title": "Your name", "description": "As in your passport."},
    "age": {"type": "integer"},
    "height": {"type": "number"},
    "agrees": {"type": "boolean"},
    "colour": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
    "shape": {"type": "string", "oneOf": [{"const": "o", "title": "Round"}]},
    "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}]}},
}


def form(properties: JsonValue, required: JsonValue = None) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return {"message": "Who are you?", "requestedSchema": schema}


def test_each_field_is_a_question_and_each_answer_has_its_type() -> None:
    asked = elicitation.read_elicitation(form(FIELDS), server="it")
    assert asked is not None
    name, age, _, agrees, colour, *_ = asked.questions
    assert name.question == "it asks: Who are you?\nYour name\nAs in your passport."
    assert (name.header, name.options, name.takes_own_words) == ("Your name", (), True)
    assert age.header == "age"
    assert [option.label for option in agrees.options] == ["Yes", "No"]
    assert [option.label for option in colour.options] == ["Red", "Blue"]
    assert not colour.takes_own_words
    answers = (("Ada",), ("36",), ("1.65",), ("Yes",), ("Blue",), ("Round",), ("Monday",))
    assert elicitation.answer(asked, answers) == {
        "action": "accept",
        "content": {
            "name": "Ada",
            "age": 36,
            "height": 1.65,
            "agrees": True,
            "colour": "b",
            "shape": "o",
            "days": ["mo"],
        },
    }


@pytest.mark.parametrize("text", ["x", "", "1.5", "nan", "inf", "0x10", "9" * 5_000])
def test_an_answer_that_does_not_fit_is_said_to_the_person(text: str) -> None:
    asked = elicitation.read_elicitation(form({"age": {"type": "integer"}}), server="it")
    assert asked is not None
    with pytest.raises(UnfitAnswerError, match="age"):
        elicitation.answer(asked, ((text,),))


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "one"])
def test_a_number_is_finite(text: str) -> None:
    asked = elicitation.read_elicitation(form({"n": {"type": "number"}}), server="it")
    assert asked is not None
    with pytest.raises(UnfitAnswerError):
        elicitation.answer(asked, ((text,),))


def test_only_what_is_required_must_be_answered() -> None:
    given_form = form({"a": {"type": "string"}, "b": {"type": "string"}}, ["a"])
    asked = elicitation.read_elicitation(given_form, server="it")
    assert asked is not None
    assert elicitation.answer(asked, (("x",), ())) == {"action": "accept", "content": {"a": "x"}}
    with pytest.raises(UnfitAnswerError):
        elicitation.answer(asked, ((), ("x",)))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"requestedSchema": 3},
        {"requestedSchema": {"properties": []}},
        form({}),
        form({"a": 3}),
        form({"a": {"type": "object"}}),
        form({"a": {"type": "array"}}),
        form({f"f{number}": {"type": "string"} for number in range(21)}),
        {"mode": "url", "url": "javascript:alert(1)"},
        {"mode": "url", "url": "https://a.example/\x1b[2J"},
        {"mode": "url"},
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_is_no_form_is_not_shown(params: JsonObject) -> None:
    assert elicitation.read_elicitation(params, server="it") is None


def test_an_address_is_shown_and_never_opened() -> None:
    params: JsonObject = {"mode": "url", "url": "https://a.example/login", "message": "Log in."}
    asked = elicitation.read_elicitation(params, server="it")
    assert asked is not None
    (question,) = asked.questions
    assert "https://a.example/login" in question.question
    assert elicitation.answer(asked, (("Done",),)) == {"action": "accept"}
    assert elicitation.answer(asked, (("Decline",),)) == elicitation.DECLINED
    assert elicitation.answer(asked, ((),)) == elicitation.DECLINED


schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "number", "boolean", "array", "null", 3]),
        "enum": st.lists(st.text(max_size=3) | st.integers(), max_size=3) | st.integers(),
        "items": st.dictionaries(st.just("enum"), st.lists(st.text(max_size=2))),
        "title": st.text(max_size=3) | st.integers(),
    },
)


@given(st.dictionaries(st.text(max_size=3), schemas | st.integers(), max_size=4), st.integers())
def test_reading_and_answering_never_fails_otherwise(fields: JsonObject, message: int) -> None:
    asked = elicitation.read_elicitation({**form(fields), "message": message}, server="it")
    if asked is None:
        return
    answers = tuple(
        (question.options[0].label,) if question.options else ("1",) for question in asked.questions
    )
    assert elicitation.answer(asked, answers)["action"] == "accept"
