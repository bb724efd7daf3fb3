"""The gateway as a process: starting, being refused, stopping, and what it does when the disk is full."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from gateway.stopping import LIMIT_SECONDS
from tests.conftest import Elsewhere
from tests.emulators.telegram import TelegramEmulator
from tests.gateways import GatewayProcess, clean_environment, eventually, telegram_home, threadline


def logged(gateway: GatewayProcess, words: str) -> Callable[[], Awaitable[bool]]:
    """Whether the gateway has logged these words."""

    async def look() -> bool:
        return words in await asyncio.to_thread(gateway.logged)

    return look


async def test_it_prints_where_it_is_and_that_address_works(configured: Path) -> None:
    """Any free port will do; the address holds the token, and names the home and what to do next."""
    async with GatewayProcess(configured).running() as gateway:
        assert ":0/" not in gateway.address
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as client:
            assert (await client.get(gateway.address)).status_code == 200
            assert (await client.get(gateway.address.partition("/?")[0] + "/api/sessions")).status_code == 200
        assert await gateway.stop() == 0
    assert "draining" in gateway.logged()


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns", "Nowhere/Unknown"])
async def test_it_starts_and_answers_in_any_zone(configured: Path, telegram: TelegramEmulator, zone: str) -> None:
    """Also in one that the machine does not know, with the days of another."""
    reset = {"mode": "daily", "at_hour": 4, "timezone": "America/New_York"}
    telegram_home(configured, telegram.base_url, telegram.token, session_reset=reset)
    async with GatewayProcess(configured, TZ=zone).running() as gateway:
        telegram.say("The zone does not matter")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        assert await gateway.stop() == 0
    assert "zone" in telegram.sent[0].text


async def test_a_second_gateway_with_the_same_token_is_refused_in_one_sentence(
    configured: Path, telegram: TelegramEmulator, tmp_path: Path
) -> None:
    """In the same home and in another; the first one is not disturbed."""
    other = telegram_home(tmp_path / "other", telegram.base_url, telegram.token)
    runtime = str(tmp_path / "run")
    async with GatewayProcess(configured, XDG_RUNTIME_DIR=runtime).running() as first:
        for home in (configured, other):
            second = GatewayProcess(home, XDG_RUNTIME_DIR=runtime)
            second.log = tmp_path / "second.log"
            code, said = await second.refused()
            assert code == 1
            (sentence,) = said.strip().splitlines()[-1:]
            assert sentence.startswith("Another gateway on this machine already serves the telegram account")
            assert telegram.token not in said
        telegram.say("The first one goes on")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        assert await first.stop() == 0
    assert len(telegram.sent) == 1


async def test_after_a_kill_it_starts_at_once_and_finishes_what_was_begun(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """No stale lock, no stale lease; the answer that was being sent is sent again, and counted."""
    telegram.fail("sendMessage", "hang", times=1)
    async with GatewayProcess(configured).running() as gateway:
        telegram.say("Kill me in the middle")
        await telegram.until(lambda: any(method == "sendMessage" for method, _ in telegram.calls), 20)
        await gateway.kill()
        await gateway.start()
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        assert await gateway.stop() == 0
    assert elsewhere("SELECT state, resends FROM outbox") == [{"state": "sent", "resends": 1}]
    assert len(elsewhere("SELECT id FROM messages")) == 2


async def test_a_hung_send_does_not_hold_up_the_end(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere
) -> None:
    """The drain ends in its time; what became of the send is left as unknown and settled at the next start."""
    telegram.fail("sendMessage", "hang", times=1)
    async with GatewayProcess(configured).running() as gateway:
        telegram.say("Never delivered at first")
        await telegram.until(lambda: any(method == "sendMessage" for method, _ in telegram.calls), 20)
        began = time.monotonic()
        assert await gateway.stop() == 0
        assert time.monotonic() - began < LIMIT_SECONDS
        await gateway.start()
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        assert await gateway.stop() == 0
    (row,) = elsewhere("SELECT state, resends FROM outbox")
    assert (row["state"], row["resends"]) == ("sent", 1)


async def test_the_second_signal_ends_it_at_once(configured: Path, telegram: TelegramEmulator) -> None:
    """A person who presses Ctrl-C twice does not wait for a hung send."""
    telegram.fail("sendMessage", "hang", times=None)
    async with GatewayProcess(configured).running() as gateway:
        telegram.say("hang")
        await telegram.until(lambda: any(method == "sendMessage" for method, _ in telegram.calls), 20)
        gateway.signal(signal.SIGINT)
        await eventually(logged(gateway, "told_to_stop"))
        gateway.signal(signal.SIGINT)
        assert await gateway._gone() == 128 + signal.SIGINT  # noqa: SLF001 - a third way to end


async def test_status_and_stop_from_the_command_line(configured: Path, telegram: TelegramEmulator) -> None:
    """Status while it runs, stop waits until it has ended, and there is nothing to stop afterwards."""
    async with GatewayProcess(configured).running() as gateway:
        await telegram.until(lambda: any(method == "getUpdates" for method, _ in telegram.calls), 20)
        telegram.say("One to count")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        status = await threadline(configured, "gateway", "status")
        assert status.code == 0, status.err
        assert gateway.address.partition("/?")[0] in status.out
        assert "telegram/main: connected" in status.out
        assert "outbox: sent 1" in status.out
        stopped = await threadline(configured, "gateway", "stop")
        assert stopped.code == 0, stopped.err
        assert await gateway._gone() == 0  # noqa: SLF001 - ended by somebody else
    again = await threadline(configured, "gateway", "stop")
    assert again.code == 1


async def test_a_gateway_that_was_stopped_in_its_tracks_is_told_and_can_be_woken(
    configured: Path, elsewhere: Elsewhere
) -> None:
    """It still holds its account, so nobody is told that none runs; woken, it goes on."""
    async with GatewayProcess(configured).running() as gateway:
        gateway.signal(signal.SIGSTOP)
        elsewhere("UPDATE processes SET beat = beat - 100")
        status = await threadline(configured, "gateway", "status")
        assert status.code == 1
        assert f"process {gateway.pid}" in status.out
        assert f"gives no sign of life: it was stopped, or hangs. Wake it with `kill -CONT {gateway.pid}`" in status.out
        assert "gives no sign of life" in (await threadline(configured, "doctor")).out
        stopped = await threadline(configured, "gateway", "stop")
        assert stopped.code == 1
        assert f"`kill -KILL {gateway.pid}`" in stopped.err
        gateway.signal(signal.SIGCONT)
        assert await gateway.stop() == 0


async def test_no_log_line_holds_a_token(configured: Path, telegram: TelegramEmulator) -> None:
    """Neither of a good run nor of one in trouble."""
    telegram.fail("getUpdates", "garbage", times=2)
    telegram.fail("sendMessage", "drop", times=1)
    async with GatewayProcess(configured).running() as gateway:
        telegram.say("The trouble is over")
        await telegram.until(lambda: len(telegram.sent) == 1, 30)
        assert await gateway.stop() == 0
    log = gateway.logged()
    assert "outcome_unknown" in log
    assert telegram.token not in log
    assert gateway.address.rpartition("=")[2] not in log


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(  # noqa: S603 - our own words
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)],  # noqa: S607 - the system's own
        check=False,
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607 - the same


async def test_a_full_disk_loses_nothing_and_work_goes_on_by_itself(
    small_disk: Path, telegram: TelegramEmulator
) -> None:
    """Messages stay with the platform until they can be stored; then all are answered, in order, without a restart."""
    home = telegram_home(small_disk / "home", telegram.base_url, telegram.token)
    gateway = GatewayProcess(home)
    gateway.log = small_disk.parent / "gateway.log"
    async with gateway.running():
        telegram.say("fact-0 fits")
        await telegram.until(lambda: len(telegram.sent) == 1, 20)
        _fill(small_disk)
        numbers = [telegram.say(f"fact-{number} " + "does not fit " * 300) for number in range(1, 6)]
        await eventually(logged(gateway, "disk is full"))
        assert not all(telegram.updates[number].confirmed for number in numbers)
        (small_disk / "ballast").unlink()
        await telegram.until(lambda: len(telegram.sent) == 6, 40)
        await telegram.until(lambda: all(telegram.updates[number].confirmed for number in numbers), 40)
        assert await gateway.stop() == 0
    said = [next(word for word in sent.text.split() if word.startswith("fact-")) for sent in telegram.sent]
    assert said == [f"fact-{number}" for number in range(6)]
    export = await threadline(home, "sessions", "export", "-")
    messages = json.loads(export.out)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 6


def _fill(disk: Path) -> None:
    """Write until nothing more fits."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


async def test_told_to_stop_in_the_moment_it_says_that_it_runs_it_ends_in_order(configured: Path) -> None:
    """Nobody has to wait a little before it may be stopped."""
    script = (
        "import os, signal\n"
        "from config import Home, load_settings\n"
        "from gateway.cli.running import async_run\n"
        "from gateway.daemon import Daemon\n"
        "stop = lambda address: os.kill(os.getpid(), signal.SIGTERM)\n"
        "async_run(Daemon(Home(), load_settings(Home())).run(stop))\n"
        "print('ended in order')\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script),
        env=clean_environment(configured),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        said, problem = await process.communicate()
    assert process.returncode == 0, problem.decode()
    assert said.endswith(b"ended in order\n")


@pytest.mark.parametrize("hung", [("deaf", 10.0, 0), ("blocking", 1.5, 1)])
async def test_a_hung_agent_does_not_hold_up_the_end_and_its_turn_is_left(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, hung: tuple[str, float, int]
) -> None:
    """Whether it is deaf to its cancellation or blocks everything; the next start runs the turn again."""
    how, limit, code = hung
    script = Path(__file__).with_name("hung_gateway.py")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), how, str(limit)),
        env=clean_environment(configured),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert (await process.stdout.readline()).startswith(b"running")
        telegram.say("Hang on this")
        assert await process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, said = await process.communicate()
    assert time.monotonic() - began < LIMIT_SECONDS
    assert process.returncode == code, said.decode()
    (turn,) = elsewhere("SELECT state, attempt FROM turns")
    assert (turn["state"], turn["attempt"]) == ("running", 1)
    async with GatewayProcess(configured).running() as gateway:
        # What the first one showed of its answer, if anything, is put right.
        await telegram.until(lambda: any("…" not in sent.text for sent in telegram.sent), 20)
        assert await gateway.stop() == 0
    (answer,) = telegram.sent
    assert "Hang on this" in answer.text


async def test_two_gateways_of_one_home_serve_their_own_accounts(
    configured: Path, telegram: TelegramEmulator, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    """Two homes' settings, one store: each answers on its account, and both leave it in order."""
    telegram.add_bot("2000:second-token", 2000, "secondbot")
    other = telegram_home(tmp_path / "other", telegram.base_url, "2000:second-token", telegram={"name": "second"})
    (other / "state.db").symlink_to(configured / "state.db")
    settings = yaml.safe_load((other / "config.yaml").read_text(encoding="utf-8"))
    first_account = {"enabled": False, "token": telegram.token}
    settings["platforms"]["telegram"] = [first_account, settings["platforms"]["telegram"]]
    (other / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    async with GatewayProcess(configured).running() as one, GatewayProcess(other).running() as two:
        telegram.say("For the first bot", chat_id=42)
        telegram.say("For the second bot", chat_id=43, user_id=42, token="2000:second-token")  # noqa: S106 - the emulator's
        await telegram.until(lambda: len(telegram.sent) == 2, 20)
        assert await one.stop() == 0
        telegram.say("The second goes on", chat_id=43, user_id=42, token="2000:second-token")  # noqa: S106 - the same
        await telegram.until(lambda: len(telegram.sent) == 3, 20)
        assert await two.stop() == 0
    keys = {row["session_key"] for row in elsewhere("SELECT session_key FROM sessions")}
    assert keys == {"agent:main:telegram:dm:42", "agent:second:telegram:dm:43"}
    assert elsewhere("SELECT * FROM processes") == []
