#!/usr/bin/env python3
"""Tests the server against its own document: schemathesis sends valid and invalid requests to every route of
openapi.json, and compares each answer with the document. The requests use TLS with a token, as users of a shared server
do. The server has objects of each kind: projects, users, secrets, tokens, and jobs in every phase. Prints
schemathesis' own summary.
"""

import json
import subprocess
import sys
from pathlib import Path

from muster_harness import BOUND, ROOT, MusterTest, main, tls_port

sys.path.insert(0, str(ROOT / "python"))
import muster  # noqa: E402

VENV = ROOT / "build" / "venv"
TESTS = Path(__file__).resolve().parent
# High enough for the whole run: other tests check the limits.
LIMITS = ("--request-rate", "1000000", "--request-burst", "1000000", "--failed-logins", "1000000")


def tightened(document):
    """A stricter document for the test: an unknown field in an answer is a fault. (Clients ignore unknown fields, so
    the document itself allows them.)"""
    document = json.loads(json.dumps(document))
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


class Contract(MusterTest):
    def setUp(self):
        super().setUp()
        made = subprocess.run([ROOT / "scripts" / "python_env.sh"], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.server = self.muster.start_server("--listen", "127.0.0.1:0", *LIMITS)
        self.url = f"https://127.0.0.1:{tls_port(self.server)}"
        self.client = muster.Client(socket=str(self.muster.state / "muster.sock"))
        self.addCleanup(self.client.close)
        self.fill()

    def fill(self):
        """Creates objects with the names of the document's examples, so that requests for the examples succeed."""
        client = self.client
        for name in ("team-a", "spare"):
            client.create_project({"name": name})
        for name in ("ada", "bob"):
            client.create_user({"name": name, "projects": {"team-a": "member"}})
        client.create_user({"name": "tester", "server_role": "admin"})
        client.set_secret("team-a", "API_KEY", {"value": "s3same"})
        client.set_secret("team-a", "BYTES", {"value": b"\xff\x00"})

        gate = self.muster.gate()
        self.gate = gate
        self.submit("done", ["/bin/sh", "-c", "printf 'a\\377b\\n'; echo two"])
        self.submit("failed", ["/bin/sh", "-c", "echo no >&2; exit 3"])
        self.submit("dist", ["/bin/sh", "-c", f"echo ready; {gate.wait}"])
        self.submit("stopped", ["/bin/sh", "-c", gate.wait])
        client.stop_job("stopped", now=True)
        for name in ("done", "failed", "stopped"):
            client.wait(name, check=False, timeout=BOUND)
        self.submit("held", ["true"], resources={"cpus": 0})
        self.submit("waiting", ["/bin/sh", "-c", gate.wait])
        client.suspend_job("waiting")
        next(iter(client.logs("dist", follow=True)))

    def submit(self, name, command, **fields):
        self.client.submit({"name": name, "command": command, "folder": "/", "sandbox": "none", **fields})

    def test_every_route_answers_as_the_document_says(self):
        new = [self.client.create_token({"user": "tester", "description": "contract"}) for _ in range(100)]
        own, *spare = new
        document = self.muster.work / "openapi.json"
        document.write_text(json.dumps(tightened(self.client.get_contract())))
        environment = self.muster.environment | {
            "SCHEMATHESIS_HOOKS": "contract_hooks", "PYTHONPATH": str(TESTS),
            "PYTHONDONTWRITEBYTECODE": "1", "CONTRACT_USER": "tester", "CONTRACT_TOKEN": own.text,
            "CONTRACT_TOKEN_ID": own.token.id, "CONTRACT_DOCUMENT": str(document),
            "CONTRACT_SPARE_TOKENS": json.dumps([each.text for each in spare])}
        ran = subprocess.run(
            [VENV / "bin" / "st", "--no-color", "--config-file", TESTS / "contract.toml", "run", document,
             "--url", self.url, "--tls-verify", "false"],
            env=environment, cwd=self.muster.work, capture_output=True, text=True, timeout=600)
        print(ran.stdout, ran.stderr, sep="\n", flush=True)
        self.gate.open(8)
        self.assertEqual(ran.returncode, 0, "schemathesis found what the document does not say; see above")
        self.assertIsNone(self.server.process.poll(), "the server has ended")


if __name__ == "__main__":
    main()
