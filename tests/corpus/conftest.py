"""The corpus, rebuilt once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.run import CORPUS, models


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict]]:
    if not CORPUS.is_dir():
        pytest.skip("no ../shared/corpus beside this checkout: its networks are not tested")
    return {path.stem: (path, entry) for path, entry in models(tmp_path_factory.mktemp("corpus"))}
