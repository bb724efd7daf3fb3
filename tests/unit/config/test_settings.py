"""What settings may look like, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from config import Home, Settings, load_settings


def written(tmp_path: Path, text: str) -> Settings:
    """The settings of a home whose `config.yaml` holds this text, without any variables."""
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    return load_settings(Home(tmp_path), {})


def test_without_a_file_everything_is_at_its_default(tmp_path: Path) -> None:
    """A fresh home needs no configuration."""
    settings = load_settings(Home(tmp_path / "nowhere"), {})

    assert settings == Settings()
    assert settings.agent.kind == "recall"
    assert (settings.web.host, settings.web.port, settings.web.token) == ("127.0.0.1", 8737, None)
    assert settings.group_sessions_per_user
    assert not settings.thread_sessions_per_user
    assert settings.session_reset.mode == "none"
    assert settings.delivery.unknown == "resend"


def test_defaults_do_not_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Settings()` reads nothing behind the caller's back."""
    monkeypatch.setenv("THREADLINE_WEB__PORT", "9999")
    monkeypatch.setenv("WEB", '{"port": 9999}')

    assert Settings().web.port == 8737


def test_the_documented_shape_is_understood(tmp_path: Path) -> None:
    """Every key of the documented shape is read into its place."""
    settings = written(
        tmp_path,
        """
agent: {kind: recall}
owner: {telegram: ["42"], slack: ["U1"], discord: ["99"]}
people: {colleague: {telegram: ["43"]}}
group_sessions_per_user: false
thread_sessions_per_user: true
session_reset: {mode: both, idle_minutes: 60, at_hour: 5, timezone: America/New_York}
display: {resume_display: minimal}
busy: queue
delivery: {unknown: hold}
web: {host: "::1", port: 9000, token: 0123456789abcdef}
platforms:
  telegram: {enabled: true, token: "1:a", base_url: "http://127.0.0.1:1/bot", allowed_users: ["42"], allow_all: true,
             groups: always}
  slack: {enabled: false, bot_token: b, app_token: c, base_url: "http://127.0.0.1/api/", allowed_users: [U2]}
  discord: {enabled: false, token: d, api_url: "http://127.0.0.1/v10", gateway_url: "ws://127.0.0.1", allowed_users: []}
""",
    )

    assert settings.owner.as_mapping() == {"telegram": ("42",), "slack": ("U1",), "discord": ("99",)}
    assert settings.people_as_mapping() == {"colleague": {"telegram": ("43",)}}
    assert not settings.group_sessions_per_user
    assert settings.thread_sessions_per_user
    assert settings.session_reset.model_dump() == {
        "mode": "both",
        "idle_minutes": 60,
        "at_hour": 5,
        "timezone": "America/New_York",
    }
    assert settings.display.resume_display == "minimal"
    assert settings.delivery.unknown == "hold"
    assert (settings.web.host, settings.web.port) == ("::1", 9000)
    assert settings.web.token is not None
    assert settings.web.token.get_secret_value() == "0123456789abcdef"
    (telegram,) = settings.platforms.telegram
    assert telegram.token is not None
    assert telegram.token.get_secret_value() == "1:a"
    assert (telegram.name, telegram.enabled, telegram.allow_all, telegram.groups) == ("main", True, True, "always")
    assert telegram.base_url == "http://127.0.0.1:1/bot"
    assert telegram.allowed_users == ("42",)
    assert settings.platforms.slack[0].allowed_users == ("U2",)
    assert settings.platforms.discord[0].gateway_url == "ws://127.0.0.1"


def test_a_mailbox_has_its_servers_and_its_addresses_in_one_spelling(tmp_path: Path) -> None:
    """Spelled as people do; a password may hold spaces, and is shown nowhere."""
    settings = written(
        tmp_path,
        """
owner: {email: [Ann@Example.org]}
platforms:
  email: {enabled: true, address: Agent@example.org, password: "abcd efgh", imap_host: imap.example.org,
          smtp_host: smtp.example.org, smtp_port: 587, smtp_tls: starttls, authserv_id: mx.example.org,
          allowed_users: [BOB@example.org]}
""",
    )
    (mailbox,) = settings.platforms.email

    assert settings.owner.as_mapping() == {"email": ("ann@example.org",)}
    assert (mailbox.address, mailbox.allowed_users) == ("agent@example.org", ("bob@example.org",))
    assert (mailbox.imap_port, mailbox.imap_tls, mailbox.smtp_port, mailbox.smtp_tls) == (993, "tls", 587, "starttls")
    assert mailbox.password is not None
    assert mailbox.password.get_secret_value() == "abcd efgh"
    assert "abcd efgh" not in repr(settings)


def test_ids_written_as_numbers_become_text(tmp_path: Path) -> None:
    """Ids are text everywhere, however YAML reads them."""
    settings = written(
        tmp_path,
        """
owner: {telegram: [42], discord: [80351110224678912]}
people: {ann: {telegram: [43, "44"]}}
platforms: {telegram: {allowed_users: [45]}}
""",
    )

    assert settings.owner.as_mapping() == {"telegram": ("42",), "discord": ("80351110224678912",)}
    assert settings.people["ann"].telegram == ("43", "44")
    assert settings.platforms.telegram[0].allowed_users == ("45",)


def test_keys_with_nothing_behind_them_are_defaults(tmp_path: Path) -> None:
    """Whoever comments out all lines of a section gets its defaults."""
    settings = written(
        tmp_path, "owner:\npeople:\nweb:\nsession_reset:\nplatforms:\n  telegram:\n  slack: {allowed_users: }\n"
    )

    assert settings == Settings()


def test_the_first_account_is_main_and_the_others_have_their_names(tmp_path: Path) -> None:
    """Session keys of the first account stay when a second one is added, whatever it is called."""
    settings = written(
        tmp_path,
        """
platforms:
  telegram:
    - {enabled: true, name: home, token: "1:a"}
    - {enabled: true, name: work, token: "2:b"}
    - {name: Old-One}
""",
    )

    assert [account.name for account in settings.platforms.telegram] == ["main", "work", "Old-One"]
    assert [(platform, account.name) for platform, account in settings.platforms.enabled()] == [
        ("telegram", "main"),
        ("telegram", "work"),
    ]


def test_an_empty_list_of_accounts_is_none_at_all(tmp_path: Path) -> None:
    """`telegram: []` serves nobody."""
    assert list(written(tmp_path, "platforms: {telegram: []}").platforms.enabled()) == []


def test_every_secret_is_named_for_those_who_must_not_show_it(tmp_path: Path) -> None:
    """Of every section and every account, the enabled ones and the others."""
    settings = written(
        tmp_path,
        """
agent: {kind: openai, model: m, api_key: sk-model}
web: {token: web-token-web-token}
platforms:
  telegram: [{enabled: true, token: "1:a"}, {name: two, token: "2:b"}]
  slack: {enabled: true, bot_token: xoxb-1, app_token: xapp-1}
  discord: {enabled: true, token: discord-1}
  email: {enabled: true, address: a@example.org, imap_host: i, smtp_host: s, password: "abcd efgh", trust_from: true}
""",
    )

    assert sorted(settings.secrets()) == sorted(
        ["sk-model", "web-token-web-token", "1:a", "2:b", "xoxb-1", "xapp-1", "discord-1", "abcd efgh"]
    )
    assert Settings().secrets() == []


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    """Neither repr nor str nor a dump holds a token."""
    settings = written(
        tmp_path,
        """
web: {token: s3cret-web-token-1234}
platforms:
  telegram: {token: "s3cret:telegram"}
  slack: {bot_token: s3cret-bot, app_token: s3cret-app}
  discord: {token: s3cret-discord}
""",
    )

    for shown in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert "s3cret" not in shown


def test_white_space_around_a_pasted_token_is_dropped_and_an_empty_one_is_none(tmp_path: Path) -> None:
    """A newline at the end of a token is the commonest slip."""
    settings = written(tmp_path, 'platforms: {telegram: {token: " 1:a \\n"}, discord: {token: ""}}')

    token = settings.platforms.telegram[0].token
    assert token is not None
    assert token.get_secret_value() == "1:a"
    assert settings.platforms.discord[0].token is None


def test_settings_cannot_be_changed() -> None:
    """One value for the whole process."""
    settings = Settings()

    with pytest.raises(ValidationError):
        settings.web.port = 1  # type: ignore[misc]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_time_zones_are_known_by_their_names(tmp_path: Path, zone: str) -> None:
    """Any IANA zone will do."""
    assert written(tmp_path, f"session_reset: {{timezone: {zone}}}").session_reset.timezone == zone


def test_people_may_have_names_in_any_script(tmp_path: Path) -> None:
    """Names are for people."""
    settings = written(tmp_path, "people: {Zoë: {telegram: [1]}, 王伟: {telegram: [2]}, आशा: {}}")

    assert list(settings.people) == ["Zoë", "王伟", "आशा"]


def test_the_agent_is_whole_or_refused() -> None:
    """An address of one's own needs no key; what belongs to another kind may stand there."""
    local = Settings.model_validate(
        {"agent": {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:11434/v1/"}}
    )
    assert (local.agent.base_url, local.agent.api_key) == ("http://127.0.0.1:11434/v1", None)
    keyed = Settings.model_validate(
        {"agent": {"kind": "openai", "model": "m", "api_key": "sk-secret", "command": ["x"]}}
    )
    assert "sk-secret" not in repr(keyed)
    assert keyed.agent.command == ("x",)
