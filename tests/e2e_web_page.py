"""muster ui: the port of the web page, its codes and sessions, and parts of logs. `make test-web` tests the page in a
browser."""

import gzip
import http.client
import json
import re
import socket
import stat

from muster_harness import MusterTest, main

ADDRESS = re.compile(r"^http://(ui-[a-z2-7]{8}\.localhost):(\d+)/ui/#code=(muster_\w+)\n$")


class Browser:
    """Sends the requests that a browser would send."""

    def __init__(self, address):
        self.name, port, self.code = ADDRESS.match(address).groups()
        self.port = int(port)
        self.host = f"{self.name}:{port}"
        self.cookie = None

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"host": self.host, "origin": f"http://{self.host}", "sec-fetch-site": "same-origin",
                "x-muster-request": "ui", **({"cookie": self.cookie} if self.cookie else {}),
                **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request(method, path, body=json.dumps(body) if body is not None else None,
                           headers={name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    def log_in(self):
        status, headers, body = self.ask("POST", "/v1/ui/session", {"code": self.code})
        if status == 200:
            self.cookie = headers["set-cookie"].split(";")[0]
        return status, body

    def get(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return json.loads(body)


class WebPage(MusterTest):

    def open_page(self):
        return Browser(self.muster.run("ui", "--no-open").stdout)

    def logged_in(self):
        browser = self.open_page()
        status, body = browser.log_in()
        self.assertEqual(status, 200, body)
        return browser

    def test_a_code_opens_one_session(self):
        browser = self.open_page()
        status, headers, page = browser.ask("GET", "/ui/", accept_encoding="gzip")
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("frame-ancestors 'none'", headers["content-security-policy"])
        self.assertIn(b'<div id="app">', gzip.decompress(page))
        self.assertEqual(browser.ask("GET", "/v1/whoami")[0], 401)

        # The page asks whose session the code opens. A code of the owner of the unix socket has no token.
        status, headers, body = browser.ask("POST", "/v1/ui/session", {"code": browser.code, "check": True})
        self.assertEqual((status, json.loads(body)["token"], "set-cookie" in headers), (200, "", False))

        self.assertEqual(browser.log_in()[0], 200)
        self.assertEqual(browser.get("/v1/whoami")["server_role"], "admin")
        self.assertEqual(Browser.log_in(browser)[0], 401, "the same code once more")

        self.assertIn("web page", self.muster.run("token", "list").stdout)
        self.assertEqual(browser.ask("POST", "/v1/logout")[0], 204)
        self.assertEqual(browser.ask("GET", "/v1/whoami")[0], 401)

    def test_neither_codes_nor_tokens_are_in_the_log(self):
        browser = self.logged_in()
        log = (self.muster.state / "server.log").read_text()
        self.assertIn("/v1/ui/session", log)
        self.assertNotRegex(log, r"muster_[a-z2-7]{12}_")
        self.assertNotIn(browser.code[-20:], log)

    def test_the_port_is_open_again_after_a_restart(self):
        browser = self.logged_in()
        self.muster.run("server", "--stop")
        self.muster.run("list")
        self.assertEqual(browser.get("/v1/whoami")["server_role"], "admin")
        port_file = self.muster.state / "page-port"
        self.assertEqual(stat.S_IMODE(port_file.stat().st_mode), 0o600)

    def test_the_port_closes_on_request(self):
        browser = self.logged_in()
        self.assertEqual(self.muster.run("ui", "--close").stdout, "closed the port of the web page\n")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", browser.port))
        self.muster.run("server", "--stop")
        self.muster.run("list")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", browser.port))

    def test_other_names_and_other_origins_are_refused(self):
        browser = self.logged_in()
        for host in ("evil.example.org", f"evil.example.org:{browser.port}", "127.0.0.1"):
            self.assertEqual(browser.ask("GET", "/v1/jobs", host=host)[0], 421, host)
        for headers in ({"origin": "https://evil.example.org"}, {"origin": None}, {"x_muster_request": None},
                        {"sec_fetch_site": "cross-site"}):
            self.assertEqual(browser.ask("POST", "/v1/jobs", {"name": "x", "command": ["true"]}, **headers)[0], 403,
                             headers)
        self.assertEqual(self.muster.jobs(), [])

    @staticmethod
    def lines_with(browser, query):
        """All lines that a search of the log of job `long` finds. A search that ends early continues at its `next`."""
        records, line = [], 0
        while line is not None:
            part = browser.get(f"/v1/jobs/long/log-search?{query}&line={line}")
            records += part["records"]
            line = part.get("next")
        return records

    def test_parts_of_a_long_log_are_read(self):
        self.muster.run("submit", "single", "long", "--follow", "--", "seq", "-f", "line %.0f", "0", "199999")
        browser = self.logged_in()

        last = browser.get("/v1/jobs/long/log-window?lines=2")
        self.assertEqual((last["lines"], last["complete"], last["first"]), (200000, True, 0))
        self.assertEqual([(line["line"], line["text"]) for line in last["records"]],
                         [(199998, "line 199998"), (199999, "line 199999")])
        middle = browser.get("/v1/jobs/long/log-window?task=main&line=123456&lines=3")
        self.assertEqual([line["text"] for line in middle["records"]], [f"line {n}" for n in (123456, 123457, 123458)])

        found = self.lines_with(browser, "q=LINE+77777&ignore_case=true")
        self.assertEqual([(line["line"], line["text"]) for line in found], [(77777, "line 77777")])
        found = browser.get("/v1/jobs/long/log-search?q=LINE+77777&ignore_case=true&context=1&line=77770")
        self.assertEqual([(line["line"], line.get("hit", False)) for line in found["records"]],
                         [(77776, False), (77777, True), (77778, False)])
        some = browser.get("/v1/jobs/long/log-search?q=%5Eline+1%5B0-9%5D%2B0%24&regex=true&hits=2")
        self.assertEqual([line["text"] for line in some["records"]], ["line 100", "line 110"])
        more = browser.get(f"/v1/jobs/long/log-search?q=%5Eline+1%5B0-9%5D%2B0%24&regex=true&hits=1&line={some['next']}")
        self.assertEqual([line["text"] for line in more["records"]], ["line 120"])

        status, headers, text = browser.ask("GET", "/v1/jobs/long/log-file")
        self.assertEqual(status, 200)
        self.assertEqual(headers["content-disposition"], 'attachment; filename="long.log"')
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        self.assertEqual(text.count(b"\n"), 200000)

    def test_a_download_ends_when_its_session_is_revoked(self):
        self.muster.run("submit", "single", "big", "--follow", "--", "sh", "-c", "yes 0123456789abcdef | head -c 80000000 >&2")
        browser = self.logged_in()
        connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=30)
        connection.request("GET", "/v1/jobs/big/log-file", headers={
            "host": browser.host, "cookie": browser.cookie, "sec-fetch-site": "same-origin"})
        answer = connection.getresponse()
        self.assertEqual(len(answer.read(100_000)), 100_000)

        self.assertEqual(browser.ask("POST", "/v1/logout")[0], 204)
        # What the sockets hold already is still delivered.
        self.assertLess(100_000 + len(answer.read()), 60_000_000)
        connection.close()

    def test_a_search_finds_the_lines_of_many_jobs(self):
        for name in ("first", "second"):
            self.muster.run("submit", "single", name, "--follow", "--", "seq", "-f", f"{name} %.0f", "1", "30")
        browser = self.logged_in()
        status, _, body = browser.ask("GET", "/v1/log-search?grep=%20%5B12%5D%24&hits=1")
        self.assertEqual(status, 200)
        events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in body.decode().split("\n\n") if event]
        hits = [json.loads(event["data"]) for event in events if event["event"] == "hits"]
        self.assertEqual([(hit["row"]["name"], hit["more"], [record["text"] for record in hit["records"]]) for hit in hits],
                         [("second", True, ["second 2"]), ("first", True, ["first 2"])])
        self.assertEqual(json.loads(events[-1]["data"]), {"searched": 2, "jobs": 2, "older": False})
        _, _, body = browser.ask("GET", "/v1/log-search?grep=first&jobs=1")
        self.assertNotIn(b"event: hits", body)
        self.assertIn(b'"older":true', body)
        for query in ("", "?grep=", "?grep=(", "?grep=a&hits=0", "?grep=a&jobs=10001", "?grep=a&cursor=x", "?grep=a&colour=red"):
            self.assertEqual(browser.ask("GET", "/v1/log-search" + query)[0], 400, query)

    def test_a_job_file_is_read_like_that_of_submit(self):
        browser = self.logged_in()
        file = {"name": "x", "command": "echo $RATE", "resources": {"memory": "2Gi"}, "environment": {"RATE": "0.10"},
                "volumes": ["/usr/share:/data:ro"], "scheduling": {"time_limit": "10m", "retries": "2"}}
        status, _, body = browser.ask("POST", "/v1/job-file", file)
        spec = json.loads(body)
        self.assertEqual(status, 200, body)
        self.assertEqual(spec["command"], ["sh", "-c", "echo $RATE"])
        self.assertEqual(spec["resources"]["memory_bytes"], 2 << 30)
        self.assertEqual(spec["environment"], {"RATE": "0.10"})
        self.assertEqual(spec["volumes"], [{"kind": "host_path", "source": "/usr/share", "target": "/data", "read_only": True}])
        self.assertEqual((spec["scheduling"]["time_limit_ms"], spec["scheduling"]["retries"]), (600000, 2))

        status, _, body = browser.ask("POST", "/v1/job-file", {"name": "x", "workerz": "2", "resources": {"memory": "lots"}, "grace": None})
        self.assertEqual(status, 400)
        self.assertEqual([fault["field"] for fault in json.loads(body)["faults"]], ["resources.memory", "grace", "workerz"])


if __name__ == "__main__":
    main()
