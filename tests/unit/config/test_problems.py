"""What wrong settings get: place, key, what was found, the expected form, the nearest known key; never a secret."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import ConfigError, Home, load_settings

MAILBOX = "enabled: true, address: a@x, password: p w, imap_host: h, smtp_host: h"


def problems(home: Path, text: str | bytes, environ: Mapping[str, str] | None = None) -> list[str]:
    """The sentences about a `config.yaml` with this text, with the path of the file shortened to its name."""
    file = home / "config.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_settings(Home(home), environ or {})
    assert str(caught.value).splitlines() == [str(problem) for problem in caught.value.problems]
    return [str(problem).replace(str(file), "config.yaml") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("web: {prot: 1}", "config.yaml, line 1: web.prot is not a known key; did you mean web.port?"),
        ("\nport: 1", "config.yaml, line 2: port is not a known key; did you mean web.port?"),
        ("webb: {}", "config.yaml, line 1: webb is not a known key; did you mean web?"),
        ("owner: {telegrm: []}", "config.yaml, line 1: owner.telegrm is not a known key; did you mean owner.telegram?"),
        (
            "people:\n  ann:\n    discrod: []",
            "config.yaml, line 3: people.ann.discrod is not a known key; did you mean people.ann.discord?",
        ),
        (
            "platforms:\n  telegram:\n    - {}\n    - name: b\n      tokn: x",
            "line 5: platforms.telegram[1].tokn is not a known key; did you mean platforms.telegram[1].token?",
        ),
        (
            "web: {qqqqqq: 1}",
            "config.yaml, line 1: web.qqqqqq is not a known key; known here are host, port, token",
        ),
        ("agent: {kind: gpt}", 'config.yaml, line 1: agent.kind is "gpt"; expected `recall`'),
        ("agent: {kind: openai}", "config.yaml, line 1: agent is of the kind `openai` and names no model"),
        ("agent: {kind: openai, model: m}", "agent is of the kind `openai` and has no key for its address"),
        ("agent: {kind: command, command: []}", "agent is of the kind `command` and names no program"),
        (
            "agent: {base_url: 'https://ann:pw@host/v1'}",
            "agent.base_url has a value that cannot be used (it is not shown",
        ),
        ("agent: {base_url: host:8080}", 'agent.base_url is "host:8080"; expected an http or https address'),
        ("agent: {model: two words}", 'agent.model is "two words"; expected the name of a model'),
        ("agent: {command_seconds: 0}", "agent.command_seconds is 0; expected a whole number of seconds"),
        ("agent: {api_key: two words}", "agent.api_key has a value that cannot be used (it is not shown"),
        ("busy: wait", 'config.yaml, line 1: busy is "wait"; expected `queue`, `interrupt` or `steer`'),
        ("session_reset: {mode: off}", "config.yaml, line 1: session_reset.mode is false; expected `none`, `idle`"),
        ("session_reset: {at_hour: 24}", "session_reset.at_hour is 24; expected a whole number from 0 to 23"),
        ("session_reset: {at_hour: true}", "session_reset.at_hour is true; expected a whole number from 0 to 23"),
        ("session_reset: {idle_minutes: 0}", "session_reset.idle_minutes is 0; expected a whole number of minutes"),
        ("session_reset: {timezone: Europe/Berln}", "or null. Did you mean Europe/Berlin?"),
        ("session_reset: {timezone: ../etc/passwd}", 'session_reset.timezone is "../etc/passwd"; expected the name'),
        ("session_reset: {timezone: America}", 'session_reset.timezone is "America"; expected the name of a time zone'),
        ("web: {port: 70000}", "web.port is 70000; expected a whole number from 0 to 65535"),
        ("web: {host: a b}", 'web.host is "a b"; expected a host name or an IP address'),
        ("web: 5", "config.yaml, line 1: web has a value that cannot be used"),
        ("web: [1]", "config.yaml, line 1: web is a list; expected a mapping"),
        ("platforms: {email: {chats: {}}}", "platforms.email.chats is not a known key"),
        ("platforms: {email: {allowed_bots: []}}", "platforms.email.allowed_bots is not a known key"),
        ("delivery: {unknown: drop}", 'delivery.unknown is "drop"; expected `resend` or `hold`'),
        ("group_sessions_per_user: maybe", 'group_sessions_per_user is "maybe"; expected true or false'),
        ("owner: {telegram: 42}", "owner.telegram is 42; expected a list of numeric user ids"),
        ('owner: {telegram: ["@ann"]}', 'owner.telegram[0] is "@ann"; expected a list of numeric user ids (no @names)'),
        ("owner: {telegram: [1.5]}", "owner.telegram[0] is 1.5; expected a list of numeric user ids"),
        ("owner: {telegram: [true]}", "owner.telegram[0] is true; expected a list of numeric user ids"),
        ("platforms: {telegram: {enabled: true}}", "platforms.telegram.token is missing; an enabled account needs it"),
        (
            "platforms: {slack: {enabled: true, bot_token: b}}",
            "platforms.slack.app_token is missing; an enabled account needs it",
        ),
        ("platforms: {telegram: {base_url: ftp://x}}", 'base_url is "ftp://x"; expected an http(s) address'),
        (
            "platforms: {telegram: {base_url: https://api.telegram.org/bot1}}",
            "expected an http(s) address, without the",
        ),
        ("platforms: {discord: {gateway_url: http://x}}", 'gateway_url is "http://x"; expected a ws(s) address'),
        ("platforms: {telegram: {name: a b}}", 'platforms.telegram.name is "a b"; expected up to 32 letters'),
        ("platforms: {telegram: [{}, {}]}", "platforms.telegram has account 2 without a name of its own"),
        ("platforms: {telegram: [{name: a-b}, {name: A_b}]}", "platforms.telegram has account 2 without a name of"),
        ("platforms: {telegram: [{name: a}, {name: main}]}", "platforms.telegram has account 2 without a name of"),
        (
            "platforms: {telegram: [{token: same}, {name: b, token: same}]}",
            "platforms.telegram has a token twice; account 2 (b) needs its own",
        ),
        ("owner: {email: [ann]}", 'owner.email[0] is "ann"; expected a list of mail addresses'),
        (
            "platforms: {email: {address: a b@x}}",
            'platforms.email.address is "a b@x"; expected a mail address, or null',
        ),
        ("platforms: {email: {imap_tls: ssl}}", 'platforms.email.imap_tls is "ssl"; expected `tls`, `starttls` or'),
        (
            f"platforms: {{email: {{{MAILBOX.replace('p w', 'null')}, authserv_id: mx}}}}",
            "platforms.email.password is missing",
        ),
        (
            f"platforms: {{email: {{{MAILBOX}, token_command: [x], authserv_id: mx}}}}",
            "platforms.email.password is set beside token_command; an account has only one of them",
        ),
        (
            "platforms: {email: {token_command: x}}",
            'platforms.email.token_command is "x"; expected a list of a program and its arguments',
        ),
        (f"platforms: {{email: {{{MAILBOX}}}}}", "platforms.email.trust_from is false and authserv_id is missing"),
        (
            "platforms: {email: [{address: a@x}, {name: b, address: A@X}]}",
            "platforms.email has an address twice; account 2 (b) needs its own",
        ),
        ("people: {owner: {}}", "people has the name 'owner'; expected a name of up to 64 letters"),
        ("people: {a b: {}}", "people has the name 'a b'; expected a name of up to 64 letters"),
        ("people: {Ann: {}, ann: {}}", "people has 'Ann' and 'ann', which differ only in their spelling"),
        (
            "owner: {telegram: [1]}\npeople: {ann: {telegram: [2, 1]}}",
            "people gives telegram 1 to both 'owner' and 'ann'; an account belongs to one person",
        ),
        ("people: {a: {slack: [U1]}, b: {slack: [U1]}}", "people gives slack U1 to both 'a' and 'b'"),
        ("web: {port: 1, port: 2}", "line 1: web.port is given a second time; it already stands in line 1"),
        ("busy: queue\nweb: {}\nbusy: queue", "line 3: busy is given a second time; it already stands in line 1"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place_and_what_is_expected(tmp_path: Path, text: str, sentence: str) -> None:
    """One wrong thing, one sentence that a person can act on."""
    (found,) = problems(tmp_path, text)

    assert sentence in found
    assert found.startswith("config.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: b: c", "config.yaml, line 1, column 5: this is not valid YAML: mapping values are not allowed here"),
        ("busy: queue\n\tweb: {}", "config.yaml, line 2, column 1: this is not valid YAML"),
        ("web: {port: 1", "config.yaml, line 1, column 14: this is not valid YAML: while parsing a flow mapping"),
        ("web: 1\n---\nweb: 2", "config.yaml, line 2, column 1: this is not valid YAML: expected a single document"),
        ("web: !!python/object:os.system x", "this is not valid YAML: could not determine a constructor"),
        ("- a\n- b", "config.yaml, line 1: expected a mapping of settings, such as `busy: queue`"),
        ("just text", "config.yaml, line 1: expected a mapping of settings, such as `busy: queue`"),
        ("web: {[1]: 2}", "config.yaml, line 1: a key must be a plain word"),
        ("web: &here {port: *here}", "config.yaml, line 1: this refers to itself"),
        (b"busy: queue\nweb: {host: \xff}", "config.yaml, line 2: this is not UTF-8 text; save the file as UTF-8"),
        (
            "busy: queue\nweb: {host: a\x07}",
            "config.yaml, line 2: this is not valid YAML: it holds a control character",
        ),
        ("[" * 5000, "config.yaml"),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    """A slip of the pen in the file is found by its line."""
    assert problems(tmp_path, text)[0].startswith(sentence) or sentence in problems(tmp_path, text)[0]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Nobody should have to start again and again to find the next one."""
    (tmp_path / ".env").write_text("THREADLINE_DELIVERY__UNKNOWN=x\nnonsense here\n", encoding="utf-8")

    found = problems(
        tmp_path,
        "web: {prot: 1, port: x}\nbusy: x\nplatforms: {telegram: {enabled: true, allowed_users: x}}\nbusy: queue",
        {"THREADLINE_AGENT__KIND": "x", "THREADLINE_WEBB__PORT": "1"},
    )

    told = "\n".join(found)
    for key in ("web.prot", "web.port", "busy is given", "telegram.token", "allowed_users", "delivery.unknown"):
        assert key in told
    assert "environment variable THREADLINE_AGENT__KIND: agent.kind" in told
    assert "environment variable THREADLINE_WEBB__PORT: sets nothing that is known" in told
    assert f"{tmp_path / '.env'}, line 2: this cannot be read; expected NAME=value" in told


def test_a_setting_is_blamed_on_the_layer_it_came_from(tmp_path: Path) -> None:
    """The variable that overrides the file is named, not the file."""
    (tmp_path / ".env").write_text("# ports\nTHREADLINE_WEB__PORT=http\n", encoding="utf-8")

    (from_file,) = problems(tmp_path, "web: {port: x}")
    (from_environment,) = problems(tmp_path, "web: {port: x}", {"THREADLINE_WEB__PORT": "https"})

    assert from_file == (
        f'{tmp_path / ".env"}, line 2, THREADLINE_WEB__PORT: web.port is "http"; '
        "expected a whole number from 0 to 65535"
    )
    assert from_environment == (
        'environment variable THREADLINE_WEB__PORT: web.port is "https"; expected a whole number from 0 to 65535'
    )


SECRET = "123456:hunter2-hunter2"  # noqa: S105 - made up


@pytest.mark.parametrize(
    "text",
    [
        f'platforms: {{telegram: "{SECRET}"}}',
        f'platforms: {{telegram: {{tokn: "{SECRET}"}}}}',
        f'platforms: {{telegram: {{token: ["{SECRET}"]}}}}',
        f'platforms: {{telegram: {{token: "{SECRET} x"}}}}',
        f'platforms: {{telegram: {{enabled: "{SECRET}"}}}}',
        f'platforms: {{telegram: {{base_url: "{SECRET}"}}}}',
        f'platforms: {{telegram: {{allowed_users: ["{SECRET}"]}}}}',
        f'platforms: {{telegram: [{{token: "{SECRET}"}}, {{name: b, token: "{SECRET}"}}]}}',
        f'platforms: "{SECRET}"',
        f'telegram_token: "{SECRET}"',
        f'web: {{token: "{SECRET}!"}}',
        f'busy: "{SECRET}"',
        f'owner: "{SECRET}"',
        f'"{SECRET}": x y: z',
        f"platforms: {{telegram: {{{SECRET}}}}}",
        f"token: *{SECRET.replace(':', '')}",
        f'platforms: {{telegram: {{base_url: "https://user:{SECRET}@host/bot"}}}}',
        f'platforms: {{telegram: {{token: "{SECRET}',
    ],
)
def test_a_secret_is_never_part_of_a_message(tmp_path: Path, text: str) -> None:
    """Messages end in logs and screenshots; whatever key a token was put behind, it is not shown."""
    found = problems(tmp_path, text)

    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THREADLINE_PLATFORMS__TELEGRAM", SECRET),
        ("THREADLINE_PLATFORMS__TELEGRAM__TOKN", SECRET),
        ("THREADLINE_PLATFORMS__TELEGRAM__TOKEN", f"{SECRET} x"),
        ("THREADLINE_PLATFORMS__TELEGRAM", f'{{"token": "{SECRET}"'),
        ("THREADLINE_WEB__TOKEN", "hunter2!"),
        ("THREADLINE_WEB__PORT", SECRET),
    ],
)
def test_a_secret_in_a_variable_is_never_part_of_a_message(tmp_path: Path, name: str, value: str) -> None:
    """The same for variables."""
    found = problems(tmp_path, "", {name: value})

    assert "hunter2" not in "".join(found)


def test_the_error_keeps_no_cause_that_holds_the_values(tmp_path: Path) -> None:
    """A traceback shows causes too; the validator's error knows the raw values, so it is not among them."""
    (tmp_path / "config.yaml").write_text("web: {token: short}", encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_settings(Home(tmp_path), {})

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_odd_characters_in_a_wrong_value_can_be_printed(tmp_path: Path) -> None:
    """A lone surrogate or an escape sequence in a value does not break the terminal that shows the message."""
    (found,) = problems(tmp_path, 'busy: "\\ud83d \\e[31m"')

    assert found.encode("utf-8")
    assert "\x1b" not in found


@pytest.mark.skipif(os.name != "posix", reason="a folder in the place of a file has other errors elsewhere")
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    """Also when it is no file."""
    (tmp_path / "config.yaml").mkdir()
    (tmp_path / ".env").mkdir()

    with pytest.raises(ConfigError) as caught:
        load_settings(Home(tmp_path), {})

    assert [problem.what.split(" (")[0] for problem in caught.value.problems] == ["cannot be read"] * 2


@given(text=st.text(st.sampled_from("abw:{}[]-&*!|>'\"%@`,#? \n\t<~0.éport")))
def test_any_text_is_settings_or_a_list_of_problems(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """No file makes loading fail in another way than by ConfigError."""
    home = tmp_path_factory.mktemp("any")
    (home / "config.yaml").write_text(text, encoding="utf-8")
    with contextlib.suppress(ConfigError):
        load_settings(Home(home), {})


def test_problems_are_told_file_by_file_from_top_to_bottom(tmp_path: Path) -> None:
    """In the order in which a person mends them, whatever kind they are."""
    text = "web:\n  prot: 1\n  port: http\nsession_reset: {mode: x}\nwebb: {}\n" + "\n" * 5 + "busy: x\n"

    found = problems(tmp_path, text, {"THREADLINE_WEB__PRT": "1"})

    assert [one.split(":")[0] for one in found] == [
        *(f"config.yaml, line {line}" for line in (2, 3, 4, 5, 11)),
        "environment variable THREADLINE_WEB__PRT",
    ]


def test_a_key_that_only_another_platform_has_is_not_meant_there(tmp_path: Path) -> None:
    """The keys of this platform are told instead; one that resembles them is still suggested."""
    (unknown,) = problems(tmp_path, "platforms: {email: {groups: always}}")
    (near,) = problems(tmp_path, "platforms: {email: {imap_hots: h}}")

    assert "did you mean" not in unknown
    assert "known here are enabled, name, " in unknown
    assert near.endswith("did you mean platforms.email.imap_host?")
