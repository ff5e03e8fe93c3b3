"""Puts the agent together, when a request first needs it."""

from perdure.acp.agent import Agent
from perdure.acp.client_features import ClientFeatures
from perdure.acp.dialect import FirstVersion
from perdure.acp.open_session import Speaker
from perdure.acp.wire.rpc import Connection
from perdure.client.client import Client


def make_agent(
    client: Client,
    connection: Connection,
    features: ClientFeatures,
) -> Agent:
    speaker = Speaker(connection, FirstVersion(), features)
    return Agent(client, speaker)
