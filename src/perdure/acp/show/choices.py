"""What can be chosen for a Session: its agent, its model and the variant of that model."""

from typing import Final

from msgspec import UNSET

from perdure.acp.schema.config_option import Choice, ConfigOption, Mode, Modes
from perdure.schema.models.model import DEFAULT_VARIANT, ModelInfo, ModelRef
from perdure.schema.session.session import SessionInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value

AGENT: Final = "mode"
MODEL: Final = "model"
VARIANT: Final = "thought_level"


class Choices(Value):
    """Everything that can be chosen in a Location, and what the Session has."""

    agents: tuple[AgentInfo, ...]
    models: tuple[ModelInfo, ...]
    default: ModelRef | None
    """The model of a Session that names none."""

    def modes(self, session: SessionInfo) -> Modes:
        return Modes(
            self._agent_of(session),
            tuple(
                Mode(each.id, each.id, each.description or None) for each in self._agents(session)
            ),
        )

    def options(self, session: SessionInfo) -> tuple[ConfigOption, ...]:
        options = [self._agent_option(session)]
        model = self._model_of(session)
        if model is not None:
            options.append(self._model_option(model))
            variants = self._variants(model)
            if len(variants) > 1:
                options.append(_variant_option(model, variants))
        return tuple(options)

    def find_agent(self, name: str) -> AgentInfo | None:
        """An agent that a person may choose."""
        return next((each for each in self.agents if each.id == name), None)

    def find_model(self, name: str) -> ModelInfo | None:
        return next((each for each in self.models if _name_of(each) == name), None)

    def with_variant(self, session: SessionInfo, variant: str) -> ModelRef | None:
        """The model of the Session in this variant; None if it has no such variant."""
        model = self._model_of(session)
        if model is None or variant not in self._variants(model):
            return None
        chosen = UNSET if variant == DEFAULT_VARIANT else variant
        return ModelRef(id=model.id, provider_id=model.provider_id, variant=chosen)

    def _agents(self, session: SessionInfo) -> tuple[AgentInfo, ...]:
        current = session.agent
        return tuple(
            each
            for each in self.agents
            if each.id == current or not (each.hidden or each.mode == "subagent")
        )

    def _agent_of(self, session: SessionInfo) -> str:
        if session.agent is not UNSET:
            return session.agent
        return next((each.id for each in self._agents(session)), "build")

    def _agent_option(self, session: SessionInfo) -> ConfigOption:
        return ConfigOption(
            AGENT,
            "Agent",
            "mode",
            self._agent_of(session),
            tuple(
                Choice(each.id, each.id, each.description or None) for each in self._agents(session)
            ),
        )

    def _model_of(self, session: SessionInfo) -> ModelRef | None:
        if session.model is not UNSET:
            return session.model
        agent = self.find_agent(self._agent_of(session))
        if agent is not None and agent.model is not UNSET:
            return agent.model
        return self.default

    def _model_option(self, model: ModelRef) -> ConfigOption:
        current = f"{model.provider_id}/{model.id}"
        known = [Choice(_name_of(each), each.name, each.provider_id) for each in self.models]
        if all(choice.value != current for choice in known):
            # The model of the Session may have gone; it is still what the Session has.
            known.insert(0, Choice(current, current))
        return ConfigOption(MODEL, "Model", "model", current, tuple(known))

    def _variants(self, model: ModelRef) -> tuple[str, ...]:
        found = self.find_model(f"{model.provider_id}/{model.id}")
        if found is None or not found.variants:
            return ()
        names = [variant.id for variant in found.variants]
        return tuple(dict.fromkeys([DEFAULT_VARIANT, *names, model.variant_name]))


def _variant_option(model: ModelRef, variants: tuple[str, ...]) -> ConfigOption:
    return ConfigOption(
        VARIANT,
        "Thinking",
        "thought_level",
        model.variant_name,
        tuple(Choice(each, each) for each in variants),
    )


def _name_of(model: ModelInfo) -> str:
    return f"{model.provider_id}/{model.id}"
