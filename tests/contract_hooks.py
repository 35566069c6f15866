"""Additions to the document for schemathesis: limits for generated requests, and checks of rules that the document has
only as text. schemathesis loads this file (SCHEMATHESIS_HOOKS) in a process of its own.
"""

import json
import os

import jsonschema_rs
import schemathesis

# : The user and the token of the test itself, which generated requests must not remove.
OWN_USER = os.environ["CONTRACT_USER"]
OWN_TOKEN = os.environ["CONTRACT_TOKEN_ID"]
# : Tokens for the operation that revokes the token of its own request, one for each call.
SPARE_TOKENS = json.loads(os.environ["CONTRACT_SPARE_TOKENS"])
DOCUMENT = json.load(open(os.environ["CONTRACT_DOCUMENT"], encoding="utf-8"))


def operation_id(case):
    return case.operation.definition.raw.get("operationId")


@schemathesis.auth()
class Bearer:
    """The tester's token; for the operation that revokes its own token, another one."""

    def get(self, case, context):
        return os.environ["CONTRACT_TOKEN"]

    def set(self, case, token, context):
        token = SPARE_TOKENS.pop() if operation_id(case) == "log_out" else token
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {token}"}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Changes requests so that no generated command runs, and the test's own user and token stay."""
    if operation_id(case) == "submit_job":
        tame(case)
    parameters = case.path_parameters or {}
    if parameters.get("id") == OWN_TOKEN:
        parameters["id"] = "a" * 12
    for key in ("name", "user"):
        if parameters.get(key) == OWN_USER:
            parameters[key] = "ada"


def tame(case):
    """Makes the request a dry run, so that a generated job does not run. If the server ignored dry_run, the job would
    run /bin/true once."""
    case.query = {**(case.query or {}), "dry_run": "true"}
    for name in ("name_template", "rerun_of"):  # replaces the name of the body; names a job
        case.query.pop(name, None)
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("command"), list) and body["command"]:
        body["command"] = ["/bin/true"]
    body.pop("worker_command", None)
    for role in ("leader", "parameter_server", "evaluator"):
        if isinstance(body.get(role), dict) and body[role].get("command"):
            body[role]["command"] = ["/bin/true"]
    if case.meta is not None and case.meta.generation.mode.is_positive:
        agree(body)


def agree(spec):
    """Makes the fields of a spec consistent, which a schema cannot express."""
    workers = 2 if spec.get("kind") == "mpi" else 0
    spec["workers"] = workers
    spec["command"] = ["/bin/true"]
    for field in (
        "leader",
        "leader_slots",
        "allow_launcher_only",
        "chief_is_worker",
        "success",
        "parameter_servers",
        "parameter_server",
        "evaluators",
        "evaluator",
        "volumes",
        "kubernetes",
        "labels",
        "annotations",
        "array",
        "after",
    ):
        spec.pop(field, None)
    spec["folder"] = "/"
    spec["secrets"] = []
    agree_on_image(spec)
    resources = spec.get("resources")
    if isinstance(resources, dict):
        for field in ("gpu_share", "gpu_memory_bytes"):
            resources.pop(field, None)
        if resources.get("cpus") is not None:
            resources["cpus"] = round(resources["cpus"], 3)
    scheduling = spec.get("scheduling")
    if isinstance(scheduling, dict):
        scheduling.pop("min_workers", None)
        scheduling.pop("resize", None)
        for rule in scheduling.get("retry_rules") or []:
            rule["exit_code"], rule["log_pattern"] = 1, "Xid [0-9]+"
            rule.pop("last_exit_code", None)


def agree_on_image(spec):
    """Only a job with an image has a user, a registry and container settings; only an mpi job has a launch; each
    capability is named once."""
    if not spec.get("image"):
        for field in ("user", "registry", "container", "replaces_entrypoint"):
            spec.pop(field, None)
    if spec.get("kind") != "mpi":
        spec.pop("launch", None)
    if spec.get("user"):
        spec["user"] = "1000:video"
    container = spec.get("container")
    if isinstance(container, dict) and container.get("capabilities"):
        container["capabilities"] = sorted({name.removeprefix("CAP_") for name in container["capabilities"]})


def schema_of_event(operation, kind):
    """The schema of the data of an event of this kind, as the document has it."""
    answer = operation.definition.raw["responses"]["200"]["content"]["text/event-stream"]["schema"]
    for each in answer["oneOf"]:
        if each["properties"]["event"]["const"] == kind:
            return {"components": DOCUMENT["components"], **each["properties"]["data"]["contentSchema"]}
    return None


@schemathesis.check
def events_conform(context, response, case):
    """The data of each event of a stream matches the schema of its kind."""
    if response.status_code != 200 or "text/event-stream" not in response.headers.get("content-type", [""])[0]:
        return
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" not in fields:
            continue
        schema = schema_of_event(case.operation, fields["event"])
        assert schema is not None, f"the document knows no event '{fields['event']}' of this stream"
        problems = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(json.loads(fields["data"]))]
        assert not problems, f"'{fields['event']}' event: {problems[:3]}"


@schemathesis.check
def problems_conform(context, response, case):
    """Every error is a problem document that contains the status of the answer."""
    if response.status_code < 400 or case.operation.method.upper() == "HEAD" or not response.content:
        return
    assert response.headers["content-type"][0].startswith("application/problem+json"), response.headers
    assert response.json()["status"] == response.status_code
    assert response.json()["detail"], "an error without words"


@schemathesis.check
def requests_have_ids(context, response, case):
    """Each answer has the id that the server's log and the audit log use. (A request that is refused before it is
    read, such as a path with encoded slashes, has neither an id nor a code.)"""
    if response.status_code >= 400 and response.content and "code" not in response.json():
        return
    assert response.headers.get("x-request-id"), "no x-request-id"
