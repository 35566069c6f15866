"""The Python client against a real server: over its unix socket and over TLS, and during a restart of the server."""

import dataclasses
import hashlib
import ssl
import sys
import time

from muster_harness import BOUND, ROOT, MusterTest, closed_port, main

sys.path.insert(0, str(ROOT / "python"))
import muster  # noqa: E402


class PythonClient(MusterTest):
    def setUp(self):
        super().setUp()
        self.server = self.muster.start_server(*self.flags())
        self.client = self.connect()

    def flags(self):
        return ()

    def connect(self, **options):
        options = options or {"socket": str(self.muster.state / "muster.sock")}
        client = muster.Client(**options, patience=BOUND)
        self.addCleanup(client.close)
        return client

    def spec(self, name, script, **fields):
        return muster.JobSpec(name, ["/bin/sh", "-c", script], "/", sandbox="none", **fields)

    def restart(self):
        """Kills the server; another server takes over its jobs."""
        self.server.process.kill()
        self.server.process.wait()
        self.server = self.muster.start_server(*self.flags())

    def test_a_job_is_submitted_followed_and_waited_for(self):
        job = self.client.submit(self.spec("hello", "echo one; echo two >&2; printf '\\377\\n'", environment={"A": "b"}))

        self.assertEqual((job.spec.name, job.spec.environment, job.spec.grace_ms), ("hello", {"A": "b"}, 10000))
        lines = list(self.client.logs(job, follow=True))
        self.assertEqual(sorted(line.text for line in lines), ["one", "two", "\ufffd"])
        self.assertEqual([line.base64 for line in lines if line.base64], ["/w=="])
        ended = self.client.wait(job, timeout=BOUND)
        self.assertEqual((ended.phase, ended.exit_code), ("Succeeded", 0))
        self.assertLessEqual(ended.submitted, ended.ended)
        self.assertEqual([each.id for each in self.client.jobs(phase=["Succeeded"])], [job.id])
        self.assertIn("hello", self.client.jobs()._repr_html_())
        self.client.delete_job(job.id)
        self.assertEqual(self.client.jobs(), [])

    def test_the_spec_of_a_job_is_the_one_submitted_and_can_be_submitted_again(self):
        spec = self.spec("first", "true", labels={"team": "vision"}, resources=muster.Resources(cpus=0.5))
        job = self.client.submit(spec)
        self.assertEqual(job.spec, dataclasses.replace(spec, project="default"))
        again = self.client.submit(dataclasses.replace(job.spec, name="second"))
        self.assertEqual(again.spec, dataclasses.replace(job.spec, name="second"))
        for each in (job, again):
            self.client.wait(each, timeout=BOUND)

    def test_artifacts_are_listed_and_come_byte_by_byte(self):
        job = self.client.submit(muster.JobSpec(
            "made", ["/bin/sh", "-c", "printf '\\377\\000x' >/artifacts/a; : >/artifacts/empty"], "/",
            volumes=[muster.Volume("artifacts", target="/artifacts")]))
        self.client.wait(job, timeout=BOUND)

        listed = self.client.list_artifacts(job.id, checksums=True).artifacts

        self.assertEqual([(each.path, each.bytes) for each in listed], [("a", 3), ("empty", 0)])
        self.assertEqual(listed[0].sha256, hashlib.sha256(b"\xff\0x").hexdigest())
        self.assertEqual(self.client.get_artifact(job.id, path="a"), b"\xff\0x")
        self.assertEqual(self.client.get_artifact(job.id, path="empty"), b"")

    def test_a_failed_job_raises_an_error_in_wait(self):
        self.client.submit(self.spec("bad", "echo broken; exit 3"))
        with self.assertRaisesRegex(muster.JobFailed, "job 'bad' failed.*\n.*\n.*broken") as caught:
            self.client.wait("bad", timeout=BOUND)
        self.assertEqual(caught.exception.job.exit_code, 3)

    def test_waiting_ends_when_its_time_is_over(self):
        gate = self.muster.gate()
        self.client.submit(self.spec("slow", gate.wait))
        with self.assertRaises(muster.TimedOut):
            self.client.wait("slow", timeout=0.2)
        gate.open()
        self.assertEqual(self.client.wait("slow", timeout=BOUND).phase, "Succeeded")

    def test_the_same_key_is_the_same_job(self):
        first = self.client.submit(self.spec("once", "true"), idempotency_key="k")
        self.assertEqual(self.client.submit(self.spec("once", "true"), idempotency_key="k").id, first.id)
        with self.assertRaises(muster.Conflict):
            self.client.submit(self.spec("once", "true"))

    def test_a_job_is_repeated_with_changes_and_the_next_number(self):
        first = self.client.submit(self.spec("train", "exit $CODE", environment={"CODE": "3"}))
        again = self.client.rerun(first, environment={"CODE": "0"})
        third = self.client.rerun(again, name="other")
        self.assertEqual([job.spec.name for job in (again, third)], ["train-2", "other"])
        self.assertEqual((again.origin.kind, again.origin.name, again.origin.id), ("rerun", "train", first.id))
        self.assertEqual(self.client.wait(again, timeout=BOUND).phase, "Succeeded")
        self.assertEqual(self.client.rerun(again).spec.name, "train-3")
        self.assertEqual(self.client.submit(self.spec("train", "true"), name_suffix=True).spec.name, "train-4")
        self.assertEqual(self.client.submit(self.spec("x", "true"), name_template="run-{n}").spec.name, "run-1")
        for job in self.client.jobs():
            self.client.wait(job, timeout=BOUND, check=False)

    def test_every_fault_of_a_spec_is_in_the_error(self):
        with self.assertRaises(muster.Invalid) as caught:
            self.client.submit({"name": "No Name", "command": [], "folder": "relative"})
        self.assertEqual({fault.field for fault in caught.exception.faults}, {"name", "command", "folder"})
        with self.assertRaisesRegex(muster.NotFound, "nobody"):
            self.client.get_job("nobody")

    def test_a_forecast_stores_nothing(self):
        self.assertTrue(self.client.forecast(self.spec("maybe", "true")).starts_now)
        self.assertEqual(self.client.jobs(), [])

    def test_pages_come_one_after_the_other(self):
        for number in range(7):
            self.client.submit(self.spec(f"job-{number}", "true"))
        names = [job.spec.name for job in self.client.iter_jobs(page=2, sort="-submitted")]
        self.assertEqual(names, [f"job-{number}" for number in reversed(range(7))])

    def test_a_watcher_gets_changes_also_from_the_next_server(self):
        gate = self.muster.gate()
        self.client.submit(self.spec("gone", "true"))
        self.client.wait("gone", timeout=BOUND)
        watched = self.connect().watch_jobs()
        self.assertEqual(next(watched).spec.name, "gone")
        job = self.client.submit(self.spec("dist", gate.wait))
        self.until(watched, lambda change: isinstance(change, muster.Job) and change.phase == "Running")

        self.restart()
        self.client.delete_job("gone")
        gate.open()

        seen = self.until(watched, lambda change: isinstance(change, muster.Job) and change.phase == "Succeeded")
        self.assertEqual(seen[-1].id, job.id)
        removed = [each for each in seen if isinstance(each, muster.RemovedJob)]
        removed = removed or self.until(watched, lambda change: isinstance(change, muster.RemovedJob))
        self.assertEqual(removed[-1].name, "gone")

    def test_a_followed_log_is_complete_without_repetitions_although_its_server_ends(self):
        gate = self.muster.gate()
        script = f"i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; {gate.wait}; echo last"
        self.client.submit(self.spec("long", script))
        lines = self.connect().logs("long", follow=True)
        got = [next(lines).text for _ in range(1000)]

        self.restart()
        gate.open()

        got += [line.text for line in lines]
        self.assertEqual(got, [f"line {number}" for number in range(3000)] + ["last"])

    def test_events_list_the_history_of_a_job(self):
        begin = time.time() - 3600
        job = self.client.submit(self.spec("told", "true"))
        self.client.wait(job, timeout=BOUND)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin))
        told = [event.text for event in self.client.events(name="told", since=since)]
        self.assertEqual(told, [event.text for event in self.client.get_job("told").events])

    def until(self, changes, is_it):
        seen = []
        for change in changes:
            seen.append(change)
            if is_it(change):
                return seen
        raise AssertionError(f"the stream ended after {seen}")


class OverTls(PythonClient):
    """The same over TLS, with a token and a pinned certificate."""

    def flags(self):
        if not hasattr(self, "port"):
            self.port = closed_port(self)
        return ("--listen", f"127.0.0.1:{self.port}")

    def connect(self, **options):
        if not hasattr(self, "token"):
            certificate = ssl.get_server_certificate(("127.0.0.1", self.port))
            self.fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()
            with muster.Client(socket=str(self.muster.state / "muster.sock")) as local:
                local.create_user({"name": "ada", "server_role": "admin"})
                self.token = local.create_token({"user": "ada"}).text
        return super().connect(**{"server": f"https://127.0.0.1:{self.port}", "token": self.token,
                                  "fingerprint": self.fingerprint, **options})

    def test_another_certificate_is_refused_before_the_token_is_shown(self):
        client = self.connect(fingerprint="ab" * 32)
        with self.assertRaisesRegex(muster.Refused, "not the trusted one"):
            client.who_am_i()

    def test_a_self_signed_certificate_is_refused(self):
        with self.assertRaisesRegex(muster.Refused, "is not trusted"):
            self.connect(fingerprint="").who_am_i()

    def test_an_invalid_token_is_refused(self):
        with self.assertRaises(muster.Refused) as caught:
            self.connect(token="muster_" + "a" * 12 + "_" + "b" * 52).who_am_i()
        self.assertEqual(caught.exception.status, 401)
        self.assertEqual(self.client.who_am_i().user, "ada")


if __name__ == "__main__":
    main()
