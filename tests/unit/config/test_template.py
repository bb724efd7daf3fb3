"""The file that `threadline config init` writes, and the settings as they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from config import Home, Settings, load_settings
from config.catalogue import ANY_NAME, catalogue
from config.template import as_data, as_yaml, template


def test_the_template_is_read_back_as_exactly_the_defaults(tmp_path: Path) -> None:
    """What stands there as default is the default."""
    (tmp_path / "config.yaml").write_text(template(), encoding="utf-8")

    assert load_settings(Home(tmp_path), {}) == Settings()


def test_the_template_names_every_setting_and_explains_it() -> None:
    """Nothing is left for people to guess."""
    data = yaml.safe_load(template())
    words = " ".join(template().replace("#", " ").split())

    for key in catalogue().below():
        if ANY_NAME in key.path:
            continue
        here = data
        for part in key.path:
            assert part in here, key.dotted
            here = here[part]
        assert key.meaning in words, key.dotted
        if key.leaf:
            assert key.form in words, key.dotted
            assert here == (list(key.default) if key.kind == "list" else key.default), key.dotted


def test_the_template_fits_a_terminal() -> None:
    """No line is longer than 100 characters, none ends with white space."""
    for line in template().splitlines():
        assert len(line) <= 100
        assert line == line.rstrip()


def test_what_is_shown_is_read_back_to_the_same_settings(tmp_path: Path) -> None:
    """`config show` prints a file that means the same, where no secret is set."""
    (tmp_path / "config.yaml").write_text(
        "people: {Zoë: {telegram: [1]}}\nsession_reset: {mode: both}\n"
        "platforms: {telegram: [{allowed_users: [7]}, {name: work, groups: always}]}",
        encoding="utf-8",
    )
    settings = load_settings(Home(tmp_path), {})

    (tmp_path / "config.yaml").write_text(as_yaml(settings), encoding="utf-8")

    assert load_settings(Home(tmp_path), {}) == settings
    assert "Zoë" in as_yaml(settings)


@pytest.mark.parametrize("shown", [as_yaml, lambda settings: json.dumps(as_data(settings))])
def test_secrets_are_masked(tmp_path: Path, shown: object) -> None:
    """A set secret is seen to be set, and no more."""
    (tmp_path / "config.yaml").write_text(
        "web: {token: s3cret-s3cret-s3cret}\nplatforms: {slack: {bot_token: s3cret}}", encoding="utf-8"
    )
    settings = load_settings(Home(tmp_path), {})

    assert callable(shown)
    text = shown(settings)

    assert "s3cret" not in text
    assert text.count("**********") == 2
    assert as_data(settings)["platforms"]["slack"]["app_token"] is None
