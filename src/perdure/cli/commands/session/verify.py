"""`perdure verify`: checks that an exported Session is unchanged, and says who signed it."""

import argparse

from perdure.cli import export_file, options, terminal
from perdure.cli.problem import Problem
from perdure.core.export import ed25519
from perdure.core.export.chain import Signer
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "verify",
        "Check that a file which `perdure export` printed is unchanged: no record changed,\n"
        "removed, added or moved, and the signature genuine. It needs no database.",
        examples="perdure verify session.json\nperdure verify --key KEY session.json",
    )
    parser.add_argument("file", metavar="FILE", help="file that was exported; `-` reads stdin")
    parser.add_argument(
        "--key",
        metavar="KEY",
        help="require that the owner of this public key has signed it; on the machine of an export"
        " `perdure export --public-key` prints its key",
    )
    given = parser.parse_args(argv)
    exported, data = export_file.load(given.file)
    signer = export_file.verify(given.file, exported, data)
    if given.key is not None and given.key != signer.text:
        raise Problem(f"{terminal.one_line(given.file)} was signed with another key: {signer.text}")
    count = len(exported["messages"]), len(exported["events"])
    terminal.print_output(
        f"{terminal.one_line(str(exported['session']['id']))} is unchanged: {count[0]:,} messages,"
        f" {count[1]:,} events\nsigned by {signer.text}{_whose(signer, given)}\n"
    )
    return 0


def _whose(signer: Signer, given: argparse.Namespace) -> str:
    """What is known of a key besides its value."""
    if given.key is not None:
        return ", the key that you named"
    directory = options.read_environment(given.data_dir).data_dir
    try:
        own = secrets.find_export_key(directory)
    except SecretFileError:
        own = None
    if own is not None and ed25519.public_key(own) == signer.key:
        return ", the key of this data directory"
    return "; compare it with the key of the one who exported it"
