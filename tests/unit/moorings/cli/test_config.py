"""What the configuration file says holds unless an option or a variable says else."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.cli.config import Config, find_config, read_config
from moorings.errors import BadInputError
from tests.lab.command_line import moorings


def write(folder: Path, text: str) -> dict[str, str]:
    """Write a file; returns the variables that name it."""
    path = folder / "config.toml"
    path.write_text(text)
    return {"MOORINGS_CONFIG": str(path)}


def test_it_is_where_such_files_are(tmp_path: Path) -> None:
    home = Path.home() / ".config"
    assert find_config({}) == home / "moorings" / "config.toml"
    assert find_config({"XDG_CONFIG_HOME": "/x"}) == Path("/x/moorings/config.toml")
    assert find_config({"MOORINGS_CONFIG": "/y"}) == Path("/y")
    assert read_config({"XDG_CONFIG_HOME": str(tmp_path)}) == Config()


def test_paths_begin_in_its_folder(tmp_path: Path) -> None:
    environ = write(
        tmp_path,
        'server = "tls://nats:4222"\nbus-user = "viewer"\n'
        'bus-password-file = "secret"\nbus-ca-file = "/etc/ca.pem"\n',
    )
    assert read_config(environ) == Config(
        server="tls://nats:4222",
        bus_user="viewer",
        bus_password_file=str(tmp_path / "secret"),
        bus_ca_file="/etc/ca.pem",
    )
    assert read_config(environ).options == {"server": "tls://nats:4222"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("server = 4222", "server: must be a string"),
        ('sever = "x"', "sever: unknown; the settings are server, cluster"),
        ("server", "is not TOML: Expected .=. after a key"),
        ('server = "x"\nstate-dir = "y"', "exclude each other"),
    ],
)
def test_what_is_wrong_in_it_is_told(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(BadInputError, match=reason):
        read_config(write(tmp_path, text))


def test_other_bytes_than_text_are_told(tmp_path: Path) -> None:
    environ = write(tmp_path, "")
    Path(environ["MOORINGS_CONFIG"]).write_bytes(b"\xff")
    with pytest.raises(BadInputError, match="is not UTF-8 text"):
        read_config(environ)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file"):
        read_config({"MOORINGS_CONFIG": str(tmp_path / "nothing")})


def test_options_and_variables_win(tmp_path: Path) -> None:
    """Each names a server where nobody answers, and the error says which."""
    config = write(tmp_path, 'server = "nats://127.0.0.1:1"\n')
    variable = {"MOORINGS_SERVER": "nats://127.0.0.1:2"}
    for environment, words, asked in (
        (config, (), "127.0.0.1:1"),
        (config | variable, (), "127.0.0.1:2"),
        (config | variable, ("--server", "nats://127.0.0.1:3"), "127.0.0.1:3"),
        (config, ("--state-dir", str(tmp_path)), "none runs with its state in"),
    ):
        done = moorings("get", *words, home=tmp_path, environment=environment)
        assert done.returncode == 3, done.stderr
        assert asked in done.stderr
    bad = write(tmp_path, "sever = 1")
    done = moorings("get", home=tmp_path, environment=bad)
    assert (done.returncode, "sever: unknown" in done.stderr) == (3, True)
    assert moorings("get", "--help", home=tmp_path, environment=bad).returncode == 0
