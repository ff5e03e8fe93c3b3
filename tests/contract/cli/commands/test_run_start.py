"""What `perdure run` loads for a plain answer: nothing that only other runs need."""

import os
import subprocess
import sys
from pathlib import Path

ONLY_OTHERS_NEED = {
    "ctypes": "a tool that touches a file",
    "difflib": "an edit",
    "html": "a page of the web, a login",
    "httptools": "a model of a provider",
    "httpx2": "a client that connects",
    "importlib.metadata": "an installed plugin",
    "json": "--format json",
    "mimetypes": "an attachment",
    "perdure.client.generated.typed_operations": "a client with decoded values",
    "zoneinfo": "a configured time zone",
}


def test_a_plain_answer_loads_nothing_that_only_other_runs_need(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from perdure.cli.main import main\n"
        "status = main()\n"
        "print('LOADED', *sys.modules)\n"
        "sys.exit(status)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "run", "--model", "demo/demo", "hello"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    answer, _, loaded = ran.stdout.partition("LOADED")
    assert "demo model" in answer
    assert ONLY_OTHERS_NEED.keys() & set(loaded.split()) == set()
