"""Reasons why a model cannot be used, each with a message for the user."""

from perdure.schema.models.model import ModelRef
from perdure.schema.value import Value


class ModelUnavailable(Value):
    ref: ModelRef
    reason: str

    @property
    def message(self) -> str:
        return f"Model {_name(self.ref)} cannot be used: {self.reason}."


class VariantUnavailable(Value):
    ref: ModelRef
    variants: tuple[str, ...]

    @property
    def message(self) -> str:
        known = ", ".join(self.variants) or "none"
        return (
            f"Model {_name(self.ref)} has no variant {self.ref.variant_name!r} (it has: {known})."
        )


class UnsupportedApi(Value):
    ref: ModelRef
    reason: str

    @property
    def message(self) -> str:
        return f"Model {_name(self.ref)} cannot be called: {self.reason}."


class ModelNotSelected(Value):
    message: str = "No model can be used here. Configure a provider, or choose a model."


ModelFailure = ModelUnavailable | VariantUnavailable | UnsupportedApi | ModelNotSelected


def _name(ref: ModelRef) -> str:
    return f"{ref.provider_id}/{ref.id}"
