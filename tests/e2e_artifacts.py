"""Only the files in a job's /artifacts can be listed and fetched. They are unchanged, during the job and after it."""

import hashlib
import json
import os
import socket

from muster_harness import MusterTest, UnixConnection, read_bytes, main

MIB = 1 << 20


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def memory_of(pid):
    """The peak memory of the process, in bytes."""
    for line in read_bytes(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} is no process")


class Artifacts(MusterTest):

    def leave(self, script, name="job", *flags):
        """A job that has run `script` in its artifacts folder."""
        self.muster.run("submit", "single", name, "--artifacts", *flags, "--follow", "--", "sh", "-c",
                        f"cd /artifacts && {script}")

    def listed(self, *flags, name="job"):
        page = json.loads(self.muster.run("artifacts", "list", name, *flags, "-o", "json").stdout)
        return page["artifacts"]

    def folder(self, name="job"):
        return self.muster.state / "jobs" / self.muster.job(name)["id"] / "artifacts"

    def get(self, *words, code=0):
        return self.muster.run("artifacts", "get", "job", *words, code=code)

    def ask(self, target, headers=()):
        connection = UnixConnection(self.muster.state / "muster.sock")
        try:
            connection.request("GET", target, headers=dict(headers))
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    # --- listing

    def test_files_are_listed_with_sizes_and_checksums_and_fetched(self):
        self.leave("printf weights > model.pt; mkdir logs; seq 1000 > logs/out; : > empty")

        self.assertEqual([(each["path"], each["bytes"]) for each in self.listed()],
                         [("empty", 0), ("logs/out", 3893), ("model.pt", 7)])
        self.assertNotIn("sha256", self.listed()[0])
        sums = {each["path"]: each["sha256"] for each in self.listed("--checksums")}
        self.assertEqual(sums["model.pt"], sha256(b"weights"))
        table = self.muster.run("artifacts", "list", "job").stdout.splitlines()
        self.assertRegex(table[0], r"^PATH +SIZE +MODIFIED$")
        self.assertRegex(table[3], r"^model.pt +7 B +20\d\d-")

        ran = self.get()

        self.assertIn("fetched 3 files, 3.9 KiB, into", ran.stderr)
        to = self.muster.work / "job-artifacts"
        self.assertEqual((to / "model.pt").read_bytes(), b"weights")
        self.assertEqual((to / "logs/out").stat().st_size, 3893)
        self.assertEqual(sorted(path.name for path in to.iterdir()), ["empty", "logs", "model.pt"])

    def test_only_named_files_are_fetched(self):
        self.leave("mkdir run-1 run-10; touch run-1/a run-1/b run-10/a other")

        self.get("run-1", "other", "--to", "some")

        to = self.muster.work / "some"
        found = sorted(str(path.relative_to(to)) for path in to.rglob("*") if path.is_file())
        self.assertEqual(found, ["other", "run-1/a", "run-1/b"])
        missing = self.get("run-2", code=3)
        self.assertIn("job 'job' has no artifact 'run-2'", missing.stderr)

    def test_a_job_without_artifacts_explains_why(self):
        self.leave("true")
        self.muster.run("submit", "single", "plain", "--follow", "--", "true")

        self.assertEqual(self.listed(), [])
        self.assertIn("has left no artifacts", self.get().stderr)
        ran = self.muster.run("artifacts", "list", "plain")
        self.assertIn("has no artifact folder; submit it with --artifacts", ran.stderr)

    def test_the_folder_may_have_another_path(self):
        self.muster.run("submit", "single", "job", "--artifacts=/out", "--follow", "--", "sh", "-c",
                        "echo x > /out/a")

        self.assertEqual([each["path"] for each in self.listed()], ["a"])

    def test_all_tasks_of_a_job_share_the_folder(self):
        self.muster.run("submit", "torch", "job", "--workers", 1, "--artifacts", "--set", "success=all", "--follow",
                        "--", "sh", "-c", "touch /artifacts/$RANK")

        self.assertEqual([each["path"] for each in self.listed()], ["0", "1"])

    def test_gradient_lists_and_fetches_them(self):
        self.leave("printf weights > model.pt")

        listed = self.muster.run("gradient", "jobs", "artifacts", "list", "--id", "job/main", "--size")
        self.assertIn("| model.pt | 7               |", listed.stdout)
        self.muster.run("gradient", "jobs", "artifacts", "get", "--id", "job", "--destination", "out")

        self.assertEqual((self.muster.work / "out/model.pt").read_bytes(), b"weights")

    # --- while the job runs

    def test_a_growing_file_is_fetched_with_its_content_at_the_request(self):
        gate = self.muster.gate()
        follow = self.muster.stream(
            "submit", "single", "job", "--artifacts", "--follow", "--", "sh", "-c",
            f"cd /artifacts; printf first > log; echo there; {gate.wait}; printf ' and more' >> log")
        follow.until("there")
        self.assertEqual(self.listed()[0]["bytes"], 5)

        answer, body = self.ask("/v1/jobs/job/artifact?path=log")
        self.assertEqual((answer.getheader("content-length"), body), ("5", b"first"))
        self.get("--to", "out")
        self.assertEqual((self.muster.work / "out/log").read_bytes(), b"first")
        gate.open()
        self.assertEqual(follow.finish(), 0)

        self.get("--to", "out")
        self.assertEqual((self.muster.work / "out/log").read_bytes(), b"first and more")

    def test_a_file_that_shrinks_during_the_transfer_is_reported(self):
        self.leave(f"head -c {64 * MIB} /dev/zero > big")
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(60)
        connection.connect(str(self.muster.state / "muster.sock"))
        connection.sendall(b"GET /v1/jobs/job/artifact?path=big HTTP/1.1\r\nhost: muster\r\n\r\n")
        received = len(connection.recv(4096))

        os.truncate(self.folder() / "big", MIB)

        while piece := connection.recv(1 << 20):
            received += len(piece)
        self.assertLess(received, 64 * MIB)

    # --- large ones

    def test_a_large_file_does_not_grow_the_server(self):
        self.leave(f"yes 0123456789abcde | head -c {400 * MIB} > big")
        before = memory_of(self.muster.server_pid())

        self.get("--to", "out")

        grown = memory_of(self.muster.server_pid()) - before
        self.assertLess(grown, 32 * MIB)
        self.assertEqual((self.muster.work / "out/big").stat().st_size, 400 * MIB)

    def test_an_interrupted_transfer_continues_without_fetching_twice(self):
        self.leave(f"head -c {8 * MIB} /dev/urandom > big; echo x > small")
        content = read_bytes(self.folder() / "big")
        wanted = {each["path"]: each for each in self.listed("--checksums")}
        to = self.muster.work / "out"
        self.get("--to", "out")
        self.assertEqual(read_bytes(to / "big"), content)
        # A partial file of an interrupted command, under the name that belongs to its content.
        part = ".muster-part-" + sha256(f"big\n{wanted['big']['sha256']}".encode())[:32]
        (to / "big").unlink()
        (to / part).write_bytes(content[:5 * MIB])

        ran = self.get("--to", "out")

        self.assertIn("fetched 1 file", ran.stderr)
        self.assertIn("1 already here", ran.stderr)
        self.assertEqual(read_bytes(to / "big"), content)
        self.assertEqual(sorted(path.name for path in to.iterdir()), ["big", "small"])
        # A partial file with wrong content is not used.
        (to / "big").unlink()
        (to / part).write_bytes(b"x" * MIB)
        self.assertIn("'big' was damaged in transfer", self.get("--to", "out", code=1).stderr)
        self.assertFalse((to / "big").exists())
        self.get("--to", "out")
        self.assertEqual(read_bytes(to / "big"), content)

    def test_a_range_is_sent_only_if_the_etag_still_matches(self):
        self.leave("printf 0123456789 > ten")
        self.listed("--checksums")
        etag = f'"{sha256(b"0123456789")}"'
        target = "/v1/jobs/job/artifact?path=ten"

        answer, body = self.ask(target, {"range": "bytes=4-", "if-match": etag})
        self.assertEqual((answer.status, body), (206, b"456789"))
        self.assertEqual(answer.getheader("content-range"), "bytes 4-9/10")
        self.assertEqual(self.ask(target, {"if-match": '"other"'})[0].status, 412)
        self.assertEqual(self.ask(target, {"range": "bytes=10-"})[0].status, 416)

    def test_a_file_named_by_its_checksum_is_sent_after_a_restart_unless_it_has_changed(self):
        self.leave("printf 0123456789 > ten")
        etag = f'"{self.listed("--checksums")[0]["sha256"]}"'
        target = "/v1/jobs/job/artifact?path=ten"
        self.muster.kill_server()
        self.muster.run("list")  # starts a server

        answer, body = self.ask(target, {"if-match": etag})
        self.assertEqual((answer.status, body), (200, b"0123456789"))
        self.assertEqual(answer.getheader("etag"), etag)

        (self.folder() / "ten").write_bytes(b"9876543210")
        self.assertEqual(self.ask(target, {"if-match": etag})[0].status, 412)

    def test_an_etag_without_a_checksum_stays_valid_when_the_checksum_is_computed(self):
        self.leave("printf 0123456789 > ten")
        target = "/v1/jobs/job/artifact?path=ten"
        etag = self.ask(target)[0].getheader("etag")
        self.listed("--checksums")

        answer, body = self.ask(target, {"range": "bytes=4-", "if-range": etag})

        self.assertEqual((answer.status, body), (206, b"456789"))

    # --- hostile tasks

    def test_links_pipes_and_sockets_are_named_and_never_followed(self):
        self.leave("ln -s /etc/passwd link; ln -s / root; mkfifo pipe; echo fine > fine;"
                   "ln -s ../../../muster.db database")

        kinds = {each["path"]: each["kind"] for each in self.listed("--checksums")}
        self.assertEqual(kinds, {"database": "link", "fine": "file", "link": "link", "pipe": "pipe",
                                 "root": "link"})
        for path, status in {"link": 409, "pipe": 409, "root/etc/passwd": 404, "database": 409,
                             "..%2Fx": 400, "%2Fetc%2Fpasswd": 400, "": 400}.items():
            answer, body = self.ask(f"/v1/jobs/job/artifact?path={path}")
            self.assertEqual(answer.status, status, path)
        ran = self.get("--to", "out")
        self.assertIn("left out: 'link' is a link", ran.stderr)
        self.assertEqual([path.name for path in (self.muster.work / "out").iterdir()], ["fine"])
        ran = self.muster.run("artifacts", "get", "job", "link", "--to", "named", code=1)
        self.assertIn("cannot fetch 'link': it is a link", ran.stderr)

    def test_odd_names_are_escaped_in_listings_and_unchanged_when_fetched(self):
        self.leave(r"""printf x > "$(printf 'two\nlines')"; printf x > "$(printf 'red\033[31m')";"""
                   r""" printf x > "$(printf 'b\377d')"; printf x > '-rf *'""")

        table = self.muster.run("artifacts", "list", "job", text=False).stdout
        self.assertNotIn(b"\x1b", table)
        self.assertEqual(len(table.splitlines()), 5)
        paths = [each["path"] for each in self.listed()]
        self.assertIn({"base64": "Yv9k"}, paths)
        self.assertIn("two\nlines", paths)
        self.get("--to", "out")
        names = sorted(os.listdir(os.fsencode(self.muster.work / "out")))
        self.assertEqual(names, [b"-rf *", b"b\xffd", b"red\x1b[31m", b"two\nlines"])

    def test_links_in_the_target_folder_are_not_followed(self):
        self.leave("mkdir d; echo new > d/file; echo new > plain")
        outside = self.muster.work / "outside"
        to = self.muster.work / "out"
        outside.mkdir()
        to.mkdir()
        (to / "d").symlink_to(outside)
        (outside / "kept").write_text("mine")
        (to / "plain").symlink_to(outside / "kept")

        ran = self.get("--to", "out", code=1)

        self.assertIn("cannot write 'd/file'", ran.stderr)
        self.assertEqual(os.listdir(outside), ["kept"])
        self.assertEqual((outside / "kept").read_text(), "mine")
        self.assertEqual((to / "plain").read_text(), "new\n")
        self.assertFalse((to / "plain").is_symlink())

    def test_a_deep_tree_and_an_unreadable_folder_are_listed_as_folders(self):
        self.leave("mkdir -m 0 closed; for i in $(seq 300); do mkdir d && cd d; done; touch deep")

        kinds = {each["kind"] for each in self.listed()}
        self.assertEqual(kinds, {"folder"})

    def test_artifacts_outlive_a_restart_and_are_removed_with_the_job(self):
        self.leave("echo x > a")
        self.muster.kill_server()
        self.assertEqual([each["path"] for each in self.listed("--checksums")], ["a"])

        self.muster.run("delete", "job")

        self.assertIn("there is no job 'job'", self.muster.run("artifacts", "list", "job", code=3).stderr)
        self.assertEqual(self.muster.job_folders(), [])


if __name__ == "__main__":
    main()
