"""The Kubernetes API for tests, over Python's own HTTP client.

    api = Api(certificates, client="admin")
    pods = api.get("/api/v1/namespaces/default/pods")["items"]
    api.post("/api/v1/namespaces/default/pods", {...})
    api.until(lambda: pod_phase() == "Running", "the pod runs")

An answer that is not 2xx raises ApiError. Thread-safety: an Api opens a connection for each request, so threads share
it.
"""

import http.client
import json
import ssl
import time

from kubernetes_settings import API_PORT, HOST

# The time limit in seconds of every wait. Only a hang reaches it.
BOUND = 90

# Seconds between two checks of a state that cannot be watched.
_PAUSE = 0.05


class ApiError(Exception):
    def __init__(self, method, path, code, status):
        self.code = code
        self.reason = status.get("reason", "") if isinstance(status, dict) else ""
        self.message = status.get("message", "") if isinstance(status, dict) else str(status)
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.message}")


def until(condition, what, bound=BOUND):
    """Calls `condition` until its result is true, and returns the result. An exception counts as false."""
    deadline = time.monotonic() + bound
    while True:
        error = None
        try:
            if result := condition():
                return result
        except (OSError, http.client.HTTPException, ApiError, KeyError, IndexError, TypeError) as caught:
            error = caught
        if time.monotonic() > deadline:
            raise AssertionError(f"after {bound} s still not so: {what}" + (f"; {error}" if error else ""))
        time.sleep(_PAUSE)


class Api:
    """Logs in by the certificate `client` of `certificates`, or by `token`."""

    def __init__(self, certificates, client=None, token=None):
        self._context = ssl.create_default_context(cafile=certificates.path("ca.crt"))
        self._token = token
        if client:
            self._context.load_cert_chain(certificates.path(f"{client}.crt"), certificates.path(f"{client}.key"))

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)

    def patch(self, path, body, kind="merge-patch"):
        return self.call("PATCH", path, body, f"application/{kind}+json")

    def delete(self, path, body=None):
        return self.call("DELETE", path, body)

    def watch(self, path):
        """The objects of a list, and then each change: (type, object), until the API server ends it."""
        mark = "&" if "?" in path else "?"
        more = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        connection = http.client.HTTPSConnection(HOST, API_PORT, context=self._context, timeout=BOUND)
        try:
            connection.request("GET", f"{path}{mark}{more}")
            for line in connection.getresponse():
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    def call(self, method, path, body=None, kind="application/json", bound=BOUND):
        """Sends a request. Returns the decoded JSON of the answer, or its text if it is not JSON."""
        connection = http.client.HTTPSConnection(HOST, API_PORT, context=self._context, timeout=bound)
        try:
            headers = {"Content-Type": kind} if body is not None else {}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            is_json = "json" in answer.getheader("Content-Type", "")
            result = json.loads(text) if is_json else text
            if answer.status // 100 != 2:
                raise ApiError(method, path, answer.status, result)
            return result
        finally:
            connection.close()
