"""Selects the server, by the same rules as the command line:

    the context that is requested by name
    $MUSTER_SERVER with $MUSTER_TOKEN (and $MUSTER_FINGERPRINT), for programs without a configuration file
    $MUSTER_CONTEXT
    the current context (`muster context use`)
    local: this user's own server, on its unix socket
"""

from __future__ import annotations

import json
import os
import pwd
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Invalid, NotFound, Refused

DEFAULT_PORT = 7443
LOCAL = "local"


@dataclass(frozen=True)
class Endpoint:
    """The address of a server, and the credentials for it. Either `socket` or `host` is set."""

    socket: str = ""
    host: str = ""
    port: int = DEFAULT_PORT
    #: SHA-256 of the trusted certificate, 64 hexadecimal digits. Empty: authorities are trusted.
    fingerprint: str = ""
    ca_file: str = ""
    #: Without the line end that a file has. Errors: Invalid for any other character that no token has.
    token: str = field(default="", repr=False)
    project: str = ""

    def __post_init__(self) -> None:
        token = (self.token or "").strip()
        # The HTTP library would put the whole token into its error.
        wrong = re.search(r"[^!-~]", token)
        if wrong is not None:
            raise Invalid(f"the token for {self.name} is damaged: character {wrong.start() + 1} of {len(token)} is a "
                          "blank, a control character or outside of ASCII",
                          "copy the token again, as 'muster token create' has printed it")
        object.__setattr__(self, "token", token)

    @property
    def name(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.socket or f"https://{host}:{self.port}"


def parse_server(text: str) -> Tuple[str, int]:
    """The host and port of https://HOST[:PORT]."""
    try:
        parts = urlsplit(text)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise Invalid(f"'{text}' is not the address of a server", "write it as https://HOST:PORT") from None
    plain = not (parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/"))
    if parts.scheme != "https" or not parts.hostname or not plain:
        raise Invalid(f"'{text}' is not the address of a server", "write it as https://HOST:PORT")
    return parts.hostname, port


def parse_fingerprint(text: str) -> str:
    digits = text.strip().lower()
    digits = digits[len("sha256:"):] if digits.startswith("sha256:") else digits
    digits = digits.replace(":", "")
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise Invalid(f"'{text}' is not the fingerprint of a certificate",
                      "a fingerprint has 64 hexadecimal digits; the server prints it when it starts")
    return digits


def choose(context: Optional[str] = None, environment: Optional[Mapping[str, str]] = None) -> Endpoint:
    env = os.environ if environment is None else environment
    if not context and env.get("MUSTER_SERVER"):
        return _of_environment(env)
    name = context or env.get("MUSTER_CONTEXT") or ""
    if name == LOCAL:
        return Endpoint(socket=local_socket(env))
    contexts = read_contexts(_folder(env, "XDG_CONFIG_HOME", ".config"))
    name = name or contexts.get("in_use") or LOCAL
    if name == LOCAL:
        return Endpoint(socket=local_socket(env))
    for known in contexts.get("contexts") or []:
        if known.get("name") == name:
            return _of_context(known)
    raise NotFound(f"there is no context '{name}'", "list the contexts: muster context list")


def local_socket(env: Mapping[str, str]) -> str:
    """The path of the socket of this user's own server."""
    chosen = env.get("MUSTER_STATE_DIR")
    if chosen and not chosen.startswith("/"):
        raise Invalid(f"MUSTER_STATE_DIR is '{chosen}', which is not an absolute path",
                      "set it to the path of a folder from '/'")
    if chosen:
        return str(Path(chosen) / "muster.sock")
    runtime = env.get("XDG_RUNTIME_DIR") or ""
    if runtime.startswith("/") and _is_own_folder(runtime):
        return str(Path(runtime) / "muster" / "muster.sock")
    return str(_folder(env, "XDG_STATE_HOME", ".local/state") / "muster.sock")


def read_contexts(folder: Path) -> Dict[str, Any]:
    path = folder / "contexts.json"
    try:
        status = path.stat()
        if status.st_uid != os.geteuid() and os.geteuid() != 0:
            raise Refused(f"'{path}' belongs to another user", "set XDG_CONFIG_HOME to another folder")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise Refused(f"'{path}' contains your tokens, but other users may read it", f"chmod 600 '{path}'")
        contexts = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except ValueError:
        contexts = None
    known = contexts.get("contexts", []) if isinstance(contexts, dict) else None
    if not isinstance(known, list) or not all(isinstance(each, dict) for each in known) or contexts.get("version") != 1:
        raise Invalid(f"'{path}' is damaged", "repair it, or move it away and log in again: muster login https://HOST")
    return dict(contexts)


def _of_environment(env: Mapping[str, str]) -> Endpoint:
    host, port = parse_server(env["MUSTER_SERVER"])
    token = env.get("MUSTER_TOKEN", "")
    if not token.strip():
        raise Invalid("MUSTER_SERVER is set, but MUSTER_TOKEN is not",
                      "set it to a token from 'muster token create', or use a context")
    fingerprint = env.get("MUSTER_FINGERPRINT", "")
    return Endpoint(host=host, port=port, token=token,
                    fingerprint=parse_fingerprint(fingerprint) if fingerprint else "")


def _of_context(context: Mapping[str, Any]) -> Endpoint:
    host, port = parse_server(str(context.get("server", "")))
    texts: List[str] = [str(context.get(key) or "") for key in ("fingerprint", "ca_file", "token", "project")]
    fingerprint, ca_file, token, project = texts
    return Endpoint(host=host, port=port, fingerprint=parse_fingerprint(fingerprint) if fingerprint else "",
                    ca_file=ca_file, token=token, project=project)


def _folder(env: Mapping[str, str], variable: str, below_home: str) -> Path:
    chosen = env.get(variable, "")
    if chosen.startswith("/"):
        return Path(chosen) / "muster"
    home = env.get("HOME", "")
    home = home if home.startswith("/") else pwd.getpwuid(os.geteuid()).pw_dir
    return Path(home) / below_home / "muster"


def _is_own_folder(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
