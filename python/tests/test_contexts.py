"""The choice of the server for a client."""

import json
import tempfile
import unittest
from pathlib import Path

from muster import Invalid, NotFound, Refused
from muster._contexts import Endpoint, choose, parse_server

FINGERPRINT = "ab" * 32


class Contexts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.env = {"HOME": str(self.home)}

    def write(self, contexts, mode=0o600):
        path = self.home / ".config" / "muster" / "contexts.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contexts if isinstance(contexts, str) else json.dumps(contexts))
        path.chmod(mode)

    def lab(self, in_use="lab"):
        self.write({"version": 1, "in_use": in_use, "contexts": [
            {"name": "lab", "server": "https://lab:7000", "fingerprint": FINGERPRINT, "user": "ada", "token": "t",
             "project": "team-a"}]})
        return Endpoint(host="lab", port=7000, fingerprint=FINGERPRINT, token="t", project="team-a")

    def test_without_anything_it_is_the_local_server(self):
        self.assertEqual(choose(None, self.env).socket, f"{self.home}/.local/state/muster/muster.sock")
        self.assertEqual(choose(None, {**self.env, "MUSTER_STATE_DIR": "/srv/m"}).socket, "/srv/m/muster.sock")
        own = {**self.env, "XDG_RUNTIME_DIR": str(self.home)}
        self.assertEqual(choose(None, own).socket, f"{self.home}/muster/muster.sock")

    def test_the_setting_with_the_highest_precedence_applies(self):
        lab = self.lab()
        variables = {**self.env, "MUSTER_SERVER": "https://other", "MUSTER_TOKEN": "x",
                     "MUSTER_FINGERPRINT": "sha256:" + ":".join(["AB"] * 32)}
        self.assertEqual(choose(None, self.env), lab)
        self.assertEqual(choose(None, variables),
                         Endpoint(host="other", port=7443, token="x", fingerprint=FINGERPRINT))
        self.assertEqual(choose("lab", variables), lab)
        self.assertTrue(choose(None, {**self.env, "MUSTER_CONTEXT": "local"}).socket)
        self.lab(in_use="local")
        self.assertEqual(choose(None, {**self.env, "MUSTER_CONTEXT": "lab"}), lab)

    def test_unusable_settings_are_errors(self):
        self.lab()
        with self.assertRaisesRegex(NotFound, "no context 'lob'"):
            choose("lob", self.env)
        with self.assertRaisesRegex(Invalid, "MUSTER_TOKEN is not"):
            choose(None, {**self.env, "MUSTER_SERVER": "https://x"})
        with self.assertRaisesRegex(Invalid, "MUSTER_TOKEN is not"):
            choose(None, {**self.env, "MUSTER_SERVER": "https://x", "MUSTER_TOKEN": "\n"})
        with self.assertRaisesRegex(Invalid, "MUSTER_STATE_DIR is 'm', which is not an absolute path"):
            choose(None, {**self.env, "MUSTER_CONTEXT": "local", "MUSTER_STATE_DIR": "m"})
        for damaged in ("{", "[]", '{"version": 2}', '{"version": 1, "contexts": [3]}'):
            self.write(damaged)
            with self.assertRaisesRegex(Invalid, "damaged"):
                choose(None, self.env)

    def test_a_file_that_others_may_read_is_refused(self):
        self.lab()
        (self.home / ".config" / "muster" / "contexts.json").chmod(0o640)
        with self.assertRaisesRegex(Refused, "other users may read it"):
            choose(None, self.env)

    def test_a_token_is_not_shown(self):
        self.assertNotIn("'t'", repr(self.lab()))

    def test_a_token_from_a_variable_or_a_file_may_have_a_line_end_but_nothing_else(self):
        variables = {**self.env, "MUSTER_SERVER": "https://other", "MUSTER_TOKEN": "secret\r\n"}
        self.assertEqual(choose(None, variables).token, "secret")
        with self.assertRaisesRegex(Invalid, "the token for https://other:7443 is damaged") as caught:
            choose(None, {**variables, "MUSTER_TOKEN": "sec\nret"})
        self.assertNotIn("ret", str(caught.exception).replace("'muster token create'", ""))

    def test_addresses_are_https_with_a_host_and_perhaps_a_port(self):
        self.assertEqual(parse_server("https://h"), ("h", 7443))
        self.assertEqual(parse_server("https://[::1]:1"), ("::1", 1))
        for wrong in ("http://h", "h", "https://", "https://u@h", "https://h/path", "https://h:99999"):
            with self.assertRaises(Invalid, msg=wrong):
                parse_server(wrong)


if __name__ == "__main__":
    unittest.main()
