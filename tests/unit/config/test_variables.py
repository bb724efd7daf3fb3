"""Settings from the environment and from `.env`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config import ConfigError, Home, Settings, load_settings
from config.catalogue import ANY_NAME, catalogue
from config.variables import variable_name


def loaded(home: Path, environ: dict[str, str], *, file: str = "", env_file: str = "") -> Settings:
    """The settings of a home with these sources."""
    (home / "config.yaml").write_text(file, encoding="utf-8")
    (home / ".env").write_text(env_file, encoding="utf-8")
    return load_settings(Home(home), environ)


def problem(home: Path, environ: dict[str, str], *, file: str = "", env_file: str = "") -> str:
    """The one sentence about what is wrong with these sources."""
    with pytest.raises(ConfigError) as caught:
        loaded(home, environ, file=file, env_file=env_file)
    (found,) = caught.value.problems
    return str(found)


def test_the_environment_wins_over_env_file_and_that_over_the_config_file(tmp_path: Path) -> None:
    """Each layer overrides the one before it, key by key."""
    settings = loaded(
        tmp_path,
        {"THREADLINE_SESSION_RESET__AT_HOUR": "3"},
        file="session_reset: {mode: daily, at_hour: 1, idle_minutes: 5}",
        env_file="THREADLINE_SESSION_RESET__AT_HOUR=2\nexport THREADLINE_SESSION_RESET__IDLE_MINUTES='6' # minutes\n",
    )

    assert settings.session_reset.model_dump() == {"mode": "daily", "idle_minutes": 6, "at_hour": 3, "timezone": None}


def test_the_process_environment_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments the usual home and the variables of the process count."""
    monkeypatch.setenv("THREADLINE_HOME", str(tmp_path))
    monkeypatch.setenv("THREADLINE_WEB__PORT", "1234")

    assert load_settings().web.port == 1234


@pytest.mark.parametrize(
    ("value", "ids"),
    [("42,43", ("42", "43")), (" 42 ,\t43, ", ("42", "43")), ('["42", 43]', ("42", "43")), ("42", ("42",))],
)
def test_lists_are_written_with_commas_or_as_json(tmp_path: Path, value: str, ids: tuple[str, ...]) -> None:
    """Whichever is easier to write in a shell."""
    assert loaded(tmp_path, {"THREADLINE_OWNER__TELEGRAM": value}).owner.telegram == ids


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("yes", True), ("off", False), ("0", False)]
)
def test_truth_is_written_as_usual(tmp_path: Path, value: str, expected: bool) -> None:  # noqa: FBT001 - the expectation
    """The usual words for yes and no."""
    settings = loaded(tmp_path, {"THREADLINE_GROUP_SESSIONS_PER_USER": value})

    assert settings.group_sessions_per_user is expected


def test_null_unsets_and_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    """`null` overrides the file; an empty variable, as container files make them, does nothing."""
    file = "session_reset: {timezone: UTC}"

    assert loaded(tmp_path, {"THREADLINE_SESSION_RESET__TIMEZONE": "null"}, file=file).session_reset.timezone is None
    assert loaded(tmp_path, {"THREADLINE_SESSION_RESET__TIMEZONE": " "}, file=file).session_reset.timezone == "UTC"


def test_a_section_can_be_given_as_json_and_its_keys_override_it(tmp_path: Path) -> None:
    """Sections merge; single keys count more than the section."""
    settings = loaded(
        tmp_path,
        {"THREADLINE_WEB__PORT": "3", "THREADLINE_WEB": '{"port": 2, "host": "::1"}'},
        file="web: {port: 1, token: 0123456789abcdef}",
    )

    assert (settings.web.port, settings.web.host) == (3, "::1")
    assert settings.web.token is not None


def test_people_can_be_named_in_variables(tmp_path: Path) -> None:
    """Names from variables are lower case."""
    settings = loaded(
        tmp_path, {"THREADLINE_PEOPLE__ANN__TELEGRAM": "43", "THREADLINE_PEOPLE__BOB": '{"slack": ["U1"]}'}
    )

    assert settings.people_as_mapping() == {"ann": {"telegram": ("43",)}, "bob": {"slack": ("U1",)}}


@pytest.mark.parametrize(
    "file",
    [
        "",
        "platforms: {telegram: {allowed_users: [7]}}",
        "platforms: {telegram: [{allowed_users: [7]}]}",
        "platforms: {telegram: []}",
        "platforms: {telegram: }",
    ],
)
def test_the_only_account_needs_no_name(tmp_path: Path, file: str) -> None:
    """A token in a variable and all else in the file, or nothing there."""
    settings = loaded(
        tmp_path,
        {"THREADLINE_PLATFORMS__TELEGRAM__TOKEN": "1:a", "THREADLINE_PLATFORMS__TELEGRAM__MAIN__ENABLED": "true"},
        file=file,
    )

    (account,) = settings.platforms.telegram
    assert account.enabled
    assert account.token is not None
    assert account.token.get_secret_value() == "1:a"
    assert account.allowed_users == (("7",) if "7" in file else ())


def test_several_accounts_are_told_apart_by_name(tmp_path: Path) -> None:
    """The first is also known as main; a `-` in a name is a `_` in the variable."""
    settings = loaded(
        tmp_path,
        {
            "THREADLINE_PLATFORMS__TELEGRAM__MAIN__TOKEN": "1:a",
            "THREADLINE_PLATFORMS__TELEGRAM__HOME__GROUPS": "always",
            "THREADLINE_PLATFORMS__TELEGRAM__WORK_BOT__TOKEN": "2:b",
        },
        file="platforms: {telegram: [{name: home, enabled: true}, {name: Work-Bot, enabled: true}]}",
    )

    tokens = [account.token.get_secret_value() for account in settings.platforms.telegram if account.token]
    assert tokens == ["1:a", "2:b"]
    assert [account.groups for account in settings.platforms.telegram] == ["always", "mention"]


def test_a_variable_that_could_mean_several_accounts_is_refused(tmp_path: Path) -> None:
    """A token never goes to an account by chance."""
    found = problem(
        tmp_path,
        {"THREADLINE_PLATFORMS__TELEGRAM__TOKEN": "1:a"},
        file="platforms: {telegram: [{}, {name: work}]}",
    )

    assert found == (
        "environment variable THREADLINE_PLATFORMS__TELEGRAM__TOKEN: could mean any account of platforms.telegram; "
        "write THREADLINE_PLATFORMS__TELEGRAM__NAME__... with a name, known are: main, work"
    )


def test_a_variable_for_an_unknown_account_is_refused(tmp_path: Path) -> None:
    """A slip in the name is told, with the names that are known."""
    found = problem(
        tmp_path,
        {"THREADLINE_PLATFORMS__TELEGRAM__WROK__TOKEN": "1:a"},
        file="platforms: {telegram: [{}, {name: work}]}",
    )

    assert found.endswith("names no account of platforms.telegram; those known are main, work")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("THREADLINE_WEB_PORT", "did you mean THREADLINE_WEB__PORT?"),
        ("THREADLINE_WEB__PROT", "did you mean THREADLINE_WEB__PORT?"),
        ("THREADLINE_WEB__PORT__X", "did you mean THREADLINE_WEB__PORT?"),
        ("THREADLINE_PLATFORMS__TELEGRAM__TOKN", "did you mean THREADLINE_PLATFORMS__TELEGRAM__TOKEN?"),
        ("THREADLINE_QQ__ZZ__JJ", "`threadline config show` lists all settings"),
    ],
)
def test_a_variable_that_was_meant_as_a_setting_is_told_with_the_nearest_known_one(
    tmp_path: Path, name: str, hint: str
) -> None:
    """A setting that silently does nothing is the worst answer."""
    assert problem(tmp_path, {name: "1"}) == f"environment variable {name}: sets nothing that is known; {hint}"


def test_other_variables_are_let_alone(tmp_path: Path) -> None:
    """Names without the prefix, the home, and variables of other tools are no business of the settings."""
    settings = loaded(
        tmp_path,
        {"WEB__PORT": "1", "THREADLINE_HOME": "/x", "THREADLINE_BUILD_NUMBER": "7", "PATH": os.defpath},
        env_file="OTHER=1\nTHREADLINE=2\n",
    )

    assert settings == Settings()


@pytest.mark.parametrize("value", ["{", "[1", "not json"])
def test_a_section_that_is_no_json_is_told(tmp_path: Path, value: str) -> None:
    """With what was expected, and without the value."""
    found = problem(tmp_path, {"THREADLINE_WEB": value})

    assert found == "environment variable THREADLINE_WEB: web is not valid JSON; expected a mapping, written as JSON"


def test_env_file_names_the_line_of_what_it_does_not_understand(tmp_path: Path) -> None:
    """A quote that is never closed swallows the rest of the file; the line where it began is told."""
    found = problem(tmp_path, {}, env_file='A=1\nTHREADLINE_WEB__HOST="never closed\n')

    assert found == f"{tmp_path / '.env'}, line 2: this cannot be read; expected NAME=value"


def test_every_setting_can_be_set_by_its_variable(tmp_path: Path) -> None:
    """No key of the catalogue is out of reach of the environment."""
    examples = {
        "agent.context_tokens": "9000",
        "session_reset.mode": "daily",
        "session_reset.timezone": "UTC",
        "display.resume_display": "minimal",
        "delivery.unknown": "hold",
        "web.token": "0123456789abcdef",
        "owner.email": "ann@example.org",
        "platforms.email.allowed_users": "ann@example.org",
        "platforms.email.address": "agent@example.org",
        "platforms.email.imap_tls": "none",
        "platforms.email.smtp_tls": "starttls",
    }
    with_it = {
        "platforms.email.enabled": {
            "THREADLINE_PLATFORMS__EMAIL__ADDRESS": "agent@example.org",
            "THREADLINE_PLATFORMS__EMAIL__IMAP_HOST": "localhost",
            "THREADLINE_PLATFORMS__EMAIL__SMTP_HOST": "localhost",
            "THREADLINE_PLATFORMS__EMAIL__TRUST_FROM": "true",
        }
    }
    by_default = {"agent.kind": "recall", "busy": "queue", "redact": "off"}
    for key in catalogue().below():
        if not key.leaf or ANY_NAME in key.path:
            continue
        if key.dotted in by_default:
            value = by_default[key.dotted]
        elif key.path[-1].endswith("url"):
            value = "wss://127.0.0.1/" if key.path[-1] == "gateway_url" else "http://127.0.0.1/"
        elif isinstance(key.default, bool):
            value = str(not key.default)
        elif key.path[-1] == "groups":
            value = "always"
        else:
            value = examples.get(key.dotted, "U1" if key.path[-1] == "slack" else "7")
        environ = {variable_name(key): value} | with_it.get(key.dotted, {})
        if key.path[-1] == "enabled":
            environ |= {
                variable_name(sibling): sibling.dotted
                for sibling in catalogue().below()
                if sibling.secret and sibling.path[:-1] == key.path[:-1]
            }

        settings = loaded(tmp_path, environ)

        assert (settings == Settings()) == (key.dotted in by_default or key.path[-1] == "name"), key.dotted


def test_a_home_named_in_the_home_is_told(tmp_path: Path) -> None:
    """It cannot move itself."""
    found = problem(tmp_path, {}, env_file="THREADLINE_HOME=/elsewhere\n")

    assert (
        found
        == f"{tmp_path / '.env'}, line 1: THREADLINE_HOME has no effect in the home itself; set it in the environment"
    )
