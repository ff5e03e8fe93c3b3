"""What a release consists of: metadata, extras, the readme of the index, files of the sdist."""

import re
import tarfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from perdure.version import __version__
from tests.tidy.source_tree import ROOT

RELATIVE_LINK = re.compile(r"\]\((?!https://|#)")


def metadata() -> ProjectMetadata[PluginManager]:
    return ProjectMetadata(str(ROOT), PluginManager())


def test_the_version_is_written_in_one_place() -> None:
    assert metadata().version == __version__
    assert "version" not in metadata().config["project"]


def test_the_readme_of_the_index_has_absolute_links_alone() -> None:
    text = metadata().core.readme
    assert text.count("](https://") > 10
    assert RELATIVE_LINK.findall(text) == []
    for target in re.findall(r"/blob/main/([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_the_extra_all_holds_every_extra() -> None:
    extras = metadata().config["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"[a-z]+", everything.partition("[")[2])) == set(extras) - {"all"}


def test_classifiers_name_each_python_that_the_workflow_tries() -> None:
    tried = re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/release.yml").read_text())
    assert tried
    for version in tried:
        assert f"Programming Language :: Python :: {version}" in metadata().core.classifiers


def test_a_wheel_can_be_built_from_the_sdist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_WITHOUT_PAGE", "1")
    builder = SdistBuilder(str(ROOT))
    (archive,) = builder.build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "hatch_build.py", "SECURITY.md"} <= names
    assert {name.split("/")[0] for name in names if "/" in name} == {"docs", "src"}
