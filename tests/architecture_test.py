#!/usr/bin/env python3
"""Checks the architecture of the tree: which folders include which, and where heavy headers are allowed.

    tests/architecture_test.py               checks itself, then the tree
    tests/architecture_test.py --self-test   checks only that bad examples are caught

Arrows point down only. A folder under platform/ is a layer; ARROWS lists the layers that it may include. The check
reads text and compiles nothing: the check takes a fraction of a second and needs no build.
"""

import fnmatch
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCANNED = ("platform", "collective", "training", "examples")
SUFFIXES = {".h", ".hpp", ".inl", ".cc", ".cpp"}

# layer -> the layers that it may include, besides itself.
ARROWS = {
    "main": {"service", "cli", "dialects", "config", "engine", "store", "workspace", "base"},
    "service": {"config", "server", "control", "schedule", "engine", "store", "notify", "api", "http", "access", "workspace", "base"},
    # A dialect uses parts of muster's command line: connection, flags, tables.
    "dialects": {"cli", "config", "api", "http", "words", "job", "record", "access", "workspace", "base"},
    "cli": {"config", "api", "http", "simulate", "sweep", "words", "cron", "job", "record", "access", "workspace", "base"},
    "config": {"job", "record", "base"},
    "server": {"control", "logs", "notify", "page", "sweep", "api", "http", "words", "job", "access", "workspace", "base"},
    "control": {"logs", "schedule", "sweep", "launch", "engine", "store", "words", "cron", "job", "access", "base"},
    "logs": {"engine", "job", "base"},
    "engine": {"launch", "http", "words", "job", "record", "workspace", "base"},
    "store": {"words", "job", "record", "access", "base"},
    "notify": {"words", "job", "http", "access", "base"},
    "schedule": {"job", "base"},
    "simulate": {"schedule", "words", "job", "base"},
    "launch": {"job", "base"},
    "api": {"http", "sweep", "words", "job", "record", "access", "base"},
    "page": {"base"},
    "words": {"job", "record", "base"},
    "sweep": {"job", "record", "base"},
    "http": {"base"},
    "access": {"record", "base"},
    "workspace": {"base"},
    "job": {"record", "base"},
    "cron": {"base"},
    "record": {"base"},
    "base": set(),
    "training": {"collective"},
    "examples": {"training", "collective"},
    "collective": set(),
}
# Tests may also include these: they compare facts with the sentences that readers see.
ARROWS_OF_TESTS = {"words"}
# The arrows between the subfolders (rooms) of a folder. Files in the folder itself may include all of them.
COMMON = {"common", "connection", "command"}
HERE = "."
ROOMS = {
    "cli": {
        "common": set(),
        "connection": {"common"},
        "command": {"common", "connection"},
        "spec": COMMON,
        "logs": COMMON,
        "jobs": COMMON | {"logs", "metrics", "spec"},
        "metrics": COMMON,
        "sweeps": COMMON | {"jobs", "metrics", "spec"},
        "projects": COMMON,
        "cluster": COMMON | {"projects"},
        "accounts": COMMON,
        "sessions": COMMON | {"logs", "spec"},
        "files": COMMON,
        "simulation": COMMON,
        "server": COMMON,
    },
    "dialects": {"gradient": set(), "runai": set(), "kubernetes": set()},
    # HERE: the files in the folder itself, which rooms may include and which include no room. The
    # engines are process, container, slurm and kubernetes: none includes another. muster-node (node)
    # runs the process engine on machines that a cluster lends; lent is the server's side of it.
    "engine": {
        HERE: set(),
        "shim": {HERE},
        "rsh": {HERE},
        "helper": {HERE},
        "folder": {HERE, "shim"},
        "process": {HERE, "shim", "folder"},
        "container": {HERE, "shim", "folder"},
        "node": {HERE, "shim", "folder", "rsh", "process"},
        "lent": {HERE, "shim", "folder", "rsh", "node"},
        "slurm": {HERE, "shim", "folder", "rsh", "node", "lent"},
        "kubernetes": {HERE, "shim", "folder", "rsh", "node", "lent"},
        "doctor": {HERE, "shim", "folder", "rsh", "node", "process", "container", "slurm",
                   "kubernetes"},
    },
}
# The tests of all engines, with helper files that are not named like tests.
CONFORMANCE = "platform/engine/conformance"
PLATFORM = set(ARROWS) - {"main", "training", "examples", "collective"}

# Headers that cost seconds of every compile, or tie a file to one library: prefix -> where.
FENCES = (
    ("boost/beast", ("platform/http/*",)),
    ("boost/asio", ("platform/http/*", "platform/base/event_loop.cc")),
    ("sqlite3.h", ("platform/store/*",)),
    ("absl/*", ("platform/cron/*",)),
    ("libpq-fe.h", ("platform/store/*",)),
    ("archive.h", ("platform/workspace/*",)),
    ("archive_entry.h", ("platform/workspace/*",)),
    ("nlohmann/json.hpp", ("*.cc", "platform/record/field.h")),
    ("yaml-cpp/", ("platform/base/yaml.cc", "platform/cli/common/*.cc")),
    ("grpcpp/", ("training/parameter_server/rpc/*",)),
    ("grpc/", ("training/parameter_server/rpc/*",)),
    ("google/protobuf/", ("training/parameter_server/rpc/*",)),
    ("parameter_server.pb.h", ("training/parameter_server/rpc/*",)),
    ("parameter_server.grpc.pb.h", ("training/parameter_server/rpc/*_test.cc",)),
    ("torch/", ("training/torch/*", "training/include/muster/training/sync_batch_norm.h",
                "examples/resnet20/*")),
    ("mpi.h", ("collective/*",)),
    ("nccl.h", ("collective/*",)),
)

# http's own headers may include these; private_headers() finds such headers, which only http may include.
HTTP_ONLY = ("boost/beast", "boost/asio")

# Pure layers: their tests are tables of values.
PURE = {"access", "record", "job", "schedule", "simulate", "launch", "sweep", "words"}
IMPURE_HEADERS = {
    "thread", "mutex", "future", "condition_variable", "fstream", "iostream", "unistd.h", "fcntl.h",
    "poll.h", "pthread.h", "spawn.h", "dirent.h", "netdb.h", "sys/socket.h", "sys/stat.h",
    "sys/mman.h", "sys/file.h", "sys/random.h",
    "base/files.h", "base/subprocess.h", "base/event_loop.h", "base/log.h", "base/unique_fd.h",
}
IMPURE_CODE = (
    (r"_clock::now\s*\(", "reads a clock", "take the time as an argument"),
    (r"\b(clock_gettime|gettimeofday|time\s*\(\s*(nullptr|NULL|0)\s*\))|\bSystemClock\b",
     "reads a clock", "take the time as an argument"),
    (r"\b(random_device|getrandom|RAND_bytes|EVP_PKEY_keygen|SystemRandom)\b",
     "draws its own randomness", "take a base::RandomSource as an argument"),
    (r"\b(filesystem|fs)::(?!path\b)\w+", "touches the file system",
     "return what is to be written, and let the engine write it"),
    (r"\b(fopen|getenv|secure_getenv)\s*\(", "reads its surroundings", "take the value as an argument"),
    (r"\bstd::(thread|jthread|async)\b", "starts a thread", "leave threads to the layers above"),
)

# Sentences are for people. Code decides by an error's code and detail, and by the fields of a fact; it
# neither searches nor compares sentences.
MESSAGE = r"(?:what|advice|cause|reason|sentence|says)"
ACCESS = r"(?:(?:\.|->)" + MESSAGE + r"|\b" + MESSAGE + r"|\b(?:words::)?sentence\([^;{}]*?\))"
MESSAGE_READ = (
    re.compile(ACCESS + r"(?:\(\))?\s*\.\s*(?:r?find|find_\w+|starts_with|ends_with|contains|compare"
               r"|substr(?!\s*\(\s*0\s*,))\s*\("),
    re.compile(r"(?:\.|->)" + MESSAGE + r"\s*[!=]=\s*\""),
    re.compile(r"regex_(?:search|match)\s*\([^;]*" + ACCESS),
)
# Code that parses the texts of other programs, which offer no other interface.
MESSAGE_READERS = {
    "platform/engine/container/gang_networks.cc": "Docker's words for a network without addresses",
    "platform/engine/container/docker_client.cc": "Docker's words for a removal that is under way",
    "platform/engine/slurm/allocation_news.cc": "Slurm's own word for why a job waits",
    "platform/engine/slurm/slurm_words.cc": "Slurm's own words",
}

# Raw strings, comments, strings and characters; a quote between digits is a separator.
LEXEMES = re.compile(
    r'R"(?P<mark>[^(\s]*)\((?:.|\n)*?\)(?P=mark)"'
    r"|/\*(?:.|\n)*?\*/|//[^\n]*"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)


def blanked(text, keep_strings):
    """`text` without its comments and literals, with the same line numbers."""

    def blank(match):
        if keep_strings and match.group("string"):
            return match.group(0)
        return re.sub(r"[^\n]", " ", match.group(0))

    return LEXEMES.sub(blank, text)


def layer_of(path):
    """The layer of a file of the tree, e.g. platform/job/spec.h -> job."""
    parts = path.split("/")
    if parts[0] != "platform":
        return parts[0]
    return parts[1] if len(parts) > 2 else "main"


def target_of(path, include, quoted, files):
    """(layer that `include` leads to or None for a library's header, complaint or None)."""
    folder = path.rsplit("/", 1)[0]
    first = include.split("/")[0]
    if include.startswith("."):
        return None, "is a relative path; write it from the root of its part, as in \"job/spec.h\""
    if include.startswith("muster/collective/") or include == "muster/collective.h":
        return "collective", None
    if include.startswith(("muster/parameter_server/", "muster/training/")):
        return "training", None
    if path.startswith("platform/"):
        if first in PLATFORM and "/" in include and (quoted or f"platform/{include}" in files):
            return first, None
        if quoted and layer_of(path) == "main" and f"{folder}/{include}" in files:
            return "main", None
        if quoted and f"{folder}/{include}" in files:
            return None, f"names a neighbour; write \"{folder.removeprefix('platform/')}/{include}\""
    else:
        part = path.split("/")[0]
        own = [f"{folder}/{include}", f"{part}/{include}", f"{part}/src/{include}"]
        if part == "examples":
            # An example may not include files of another example.
            own = [f"{folder}/{include}", f"{'/'.join(path.split('/')[:2])}/{include}"]
            if include.startswith(path.split("/")[1] + "/"):
                own.append(f"examples/{include}")
        if any(candidate in files for candidate in own):
            return layer_of(path), None
        if f"collective/src/{include}" in files or f"collective/{include}" in files:
            return None, "is private to collective; use its public headers, \"muster/collective/...\""
        if first in PLATFORM and "/" in include and (quoted or f"platform/{include}" in files):
            return first, None
    if quoted:
        return None, "names no file of the tree; a library's header goes in <>"
    return None, None


def is_test(path):
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test_") or name.endswith(("_test.cc", "_test.h"))


def arrow_fault(path, layer, target, include):
    if target is None or target == layer or target in ARROWS.get(layer, set()):
        return None
    if is_test(path) and target in ARROWS_OF_TESTS and layer not in ARROWS[target]:
        return None
    may = ", ".join(sorted(ARROWS.get(layer, set()))) or "nothing of the tree"
    return (f"{layer} must not include {target} ({include}), for it may include only {may}: move what "
            "both need further down, or hand it in as an argument")


def room_of(path):
    """The room of a file of the tree, e.g. platform/cli/jobs/submit.cc -> jobs. A file in the folder itself is in HERE
    if the folder has that room, else in no room (empty)."""
    parts = path.split("/")
    if len(parts) < 3 or parts[0] != "platform" or parts[1] not in ROOMS:
        return ""
    return parts[2] if len(parts) > 3 else HERE if HERE in ROOMS[parts[1]] else ""


def room_fault(path, layer, target, include):
    """The fault of an include between rooms. Tests may use all rooms of their folder, because they read whole command
    lines."""
    room = room_of(path)
    if target != layer or not room or layer not in ROOMS:
        return None
    if room not in ROOMS[layer]:
        return f"{layer}/{room} is a room that ROOMS does not know: add it there with what it may include"
    other = room_of(f"platform/{include}")
    if other == room or other in ROOMS[layer][room] or is_test(path) or path.startswith(CONFORMANCE):
        return None
    may = ", ".join(sorted(ROOMS[layer][room])) or "no other room"
    return (f"{layer}/{room} must not include {include}, for it may include only {may}: move what both "
            "need further down")


def fence_fault(path, include):
    for prefix, places in FENCES:
        whole = prefix.endswith((".h", ".hpp"))
        matches = include == prefix if whole else include.startswith(prefix)
        if matches and not any(fnmatch.fnmatch(path, place) for place in places):
            return (f"{include} may stand only in {' and '.join(places)}: hide it there behind a plain "
                    "header and include that")
    return None


def includes_of(text):
    """Yields (line, header, whether it stands in quotes) for each #include of a file."""
    directives = blanked(text, keep_strings=True)
    for match in INCLUDE.finditer(directives):
        yield directives.count("\n", 0, match.start(2)) + 1, match.group(2), match.group(1) == '"'


def private_headers(texts):
    """The headers of http/ that include Beast or Asio, directly or through each other."""
    headers = {path.removeprefix("platform/"): [header for _, header, _ in includes_of(text)]
               for path, text in texts.items() if fnmatch.fnmatch(path, "platform/http/*.h")}
    private = set()
    while True:
        more = {name for name, includes in headers.items() if name not in private
                and any(header.startswith(HTTP_ONLY) or header in private for header in includes)}
        if not more:
            return private
        private |= more


def faults_of(path, text, files, private):
    """Yields (line, sentence) for each fault of one file. `files`: every path of the tree; `private`: the result of
    private_headers()."""
    layer = layer_of(path)
    if layer not in ARROWS:
        yield 1, f"{layer} is a folder that ARROWS does not know: add it there with what it may include"
        return
    for line, include, quoted in includes_of(text):
        target, complaint = target_of(path, include, quoted, files)
        if complaint:
            yield line, f"\"{include}\" {complaint}"
        for fault in (arrow_fault(path, layer, target, include), room_fault(path, layer, target, include),
                      fence_fault(path, include)):
            if fault:
                yield line, fault
        if include in private and layer != "http":
            yield line, (f"{include} would carry Beast or Asio out of http: include a header of http "
                         "that shows neither")
        if layer in PURE and include in IMPURE_HEADERS:
            yield line, (f"{layer} is pure, and <{include}> is for I/O or threads: take what it would "
                         "fetch as an argument")
    if path.startswith("platform/") and not is_test(path) and path not in MESSAGE_READERS:
        # Strings become empty. So a comparison with a string is found, but not the text of such a comparison in a
        # string.
        code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', blanked(text, keep_strings=True))
        for pattern in MESSAGE_READ:
            for match in pattern.finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                yield line, (f"`{' '.join(match.group(0).split())}...` reads a sentence: decide by the "
                             "error's code or detail, or by the fields of the fact")
    if layer in PURE:
        code = blanked(text, keep_strings=False)
        for pattern, does, remedy in IMPURE_CODE:
            for match in re.finditer(pattern, code):
                line = code.count("\n", 0, match.start()) + 1
                yield line, f"{layer} is pure, and `{match.group(0).strip()}` {does}: {remedy}"


# --- The test of the test: (path, code, a word of the fault, or None if there is no fault). ---

EXAMPLES = (
    ("platform/job/a.cc", '#include "base/result.h"', None),
    ("platform/job/a.cc", '#include "engine/shim.h"', "must not include engine"),
    ("platform/job/a.cc", '  #  include "engine/shim.h"', "must not include engine"),
    ("platform/job/a.cc", "#include <engine/shim.h>", "must not include engine"),
    ("platform/job/a.cc", '// #include "engine/shim.h"', None),
    ("platform/job/a.cc", '/*\n#include "engine/shim.h"\n*/', None),
    ("platform/job/a.cc", 'auto t = R"(\n#include "engine/shim.h"\n)";', None),
    ("platform/base/a.cc", '#include "job/spec.h"', "must not include job"),
    ("platform/http/a.cc", '#include "job/spec.h"', "must not include job"),
    ("platform/api/a.cc", '#include "control/loop.h"', "must not include control"),
    ("platform/cli/a.cc", '#include "api/client.h"', None),
    ("platform/cli/a.cc", '#include "store/store.h"', "must not include store"),
    ("platform/cli/cli.cc", '#include "cli/jobs/jobs.h"', None),
    ("platform/cli/jobs/a.cc", '#include "cli/logs/logs.h"', None),
    ("platform/cli/jobs/a.cc", '#include "cli/jobs/b.h"', None),
    ("platform/cli/logs/a.cc", '#include "cli/jobs/jobs.h"', "must not include cli/jobs/jobs.h"),
    ("platform/cli/logs/a.cc", '#include "cli/cli.h"', "must not include cli/cli.h"),
    ("platform/cli/logs/a_test.cc", '#include "cli/cli.h"', None),
    ("platform/engine/slurm/a.cc", '#include "engine/node/messages.h"', None),
    ("platform/engine/slurm/a.cc", '#include "engine/engine.h"', None),
    ("platform/engine/slurm/a.cc", '#include "engine/container/labels.h"', "must not include engine/container"),
    ("platform/engine/container/a.h", '#include "engine/process/sandbox.h"', "must not include engine/process"),
    ("platform/engine/node/a.cc", '#include "engine/slurm/options.h"', "must not include engine/slurm"),
    ("platform/engine/a.h", '#include "engine/shim/plan.h"', "must not include engine/shim"),
    ("platform/engine/conformance_a.h", '#include "engine/shim/plan.h"', None),
    ("platform/engine/slurm/a_test.cc", '#include "engine/process/sandbox.h"', None),
    ("platform/cli/attic/a.cc", '#include "cli/jobs/jobs.h"', "does not know"),
    ("platform/cli/jobs/a.cc", '#include "dialects/runai/runai.h"', "must not include dialects"),
    ("platform/dialects/runai/a.cc", '#include "cli/jobs/jobs.h"', None),
    ("platform/dialects/runai/a.cc", '#include "dialects/gradient/gradient.h"', "must not include dialects"),
    ("platform/service/a.cc", '#include "cli/cli.h"', "must not include cli"),
    ("platform/service/a.cc", '#include "config/paths.h"', None),
    ("platform/cli/a.cc", '#include "server/server.h"', "must not include server"),
    ("platform/server/a.cc", '#include "control/loop.h"', None),
    ("platform/server/a.cc", '#include "engine/engine.h"', "must not include engine"),
    ("platform/control/a.cc", '#include "store/store.h"', None),
    ("platform/control/a.cc", '#include "http/server.h"', "must not include http"),
    ("platform/engine/a.cc", '#include "launch/plan.h"', None),
    ("platform/engine/a.cc", '#include "store/store.h"', "must not include store"),
    ("platform/schedule/a.cc", '#include "launch/plan.h"', "must not include launch"),
    ("platform/store/a.cc", '#include "control/loop.h"', "must not include control"),
    ("platform/main.cc", '#include "engine/process.h"', None),
    ("platform/main.cc", '#include "launch/plan.h"', "must not include launch"),
    ("platform/main.cc", '#include "make_engine.h"', None),
    ("platform/cli/a.cc", '#include "make_engine.h"', "names no file"),
    ("platform/cli/a.cc", '#include "neighbour.h"', "names a neighbour"),
    ("platform/cli/a.cc", '#include "../store/store.h"', "relative path"),
    ("platform/cli/a.cc", '#include "yaml.h"', "names no file"),
    ("platform/newfolder/a.cc", "", "does not know"),
    ("platform/engine/a.cc", '#include "muster/collective/types.h"', "must not include collective"),
    ("platform/engine/a.cc", "#include <muster/collective/types.h>", "must not include collective"),
    ("collective/src/a.cc", '#include "muster/collective/types.h"', None),
    ("collective/src/a.cc", '#include "transport/socket.h"', None),
    ("collective/src/a.cc", '#include "base/result.h"', "must not include base"),
    ("training/a.cc", '#include "muster/collective/types.h"', None),
    ("training/a.cc", '#include "base/result.h"', "must not include base"),
    ("training/a.cc", '#include "transport/socket.h"', "private to collective"),
    ("training/parameter_server/rpc/a.cc", "#include <grpcpp/server.h>", None),
    ("training/parameter_server/a.cc", "#include <grpcpp/server.h>", "may stand only"),
    ("training/parameter_server/a.h", "#include <parameter_server.pb.h>", "may stand only"),
    ("training/torch/a.cc", "#include <torch/torch.h>", None),
    ("training/parameter_server/a.cc", "#include <torch/torch.h>", "may stand only"),
    ("training/include/muster/training/checkpoint.h", "#include <torch/torch.h>", "may stand only"),
    ("examples/resnet20/a.cc", '#include "muster/training/checkpoint.h"', None),
    ("platform/engine/a.cc", '#include "muster/training/checkpoint.h"', "must not include training"),
    ("collective/src/a.cc", '#include "muster/parameter_server/client.h"', "must not include training"),
    ("platform/launch/a.cc", '#include "muster/parameter_server/client.h"', "must not include training"),
    ("examples/digits/a.cc", '#include "muster/parameter_server/client.h"', None),
    ("examples/digits/a.cc", '#include "muster/collective/types.h"', None),
    ("examples/digits/a.cc", '#include "network.h"', None),
    ("examples/digits/a.cc", '#include "digits/network.h"', None),
    ("examples/other/a.cc", '#include "digits/network.h"', "names no file"),
    ("examples/digits/a.cc", '#include "transport/socket.h"', "private to collective"),
    ("examples/digits/a.cc", '#include "base/text.h"', "must not include base"),
    ("platform/http/a.cc", "#include <boost/beast/http.hpp>", None),
    ("platform/http/a.h", "#include <boost/beast/http.hpp>", None),
    ("platform/http/a.cc", '#include "http/connection.h"', None),
    ("platform/server/a.cc", '#include "http/server.h"', None),
    ("platform/server/a.cc", '#include "http/connection.h"', "out of http"),
    ("platform/cli/a.cc", '#include "http/indirect.h"', "out of http"),
    ("platform/server/a.cc", "#include <boost/beast.hpp>", "may stand only"),
    ("platform/base/event_loop.cc", "#include <boost/asio/post.hpp>", None),
    ("platform/base/event_loop.h", "#include <boost/asio/io_context.hpp>", "may stand only"),
    ("platform/engine/a.cc", "#include <boost/asio.hpp>", "may stand only"),
    ("platform/store/a.h", "#include <sqlite3.h>", None),
    ("platform/control/a.cc", "#include <sqlite3.h>", "may stand only"),
    ("platform/workspace/a.cc", "#include <archive.h>", None),
    ("platform/cli/a.cc", "#include <archive.h>", "may stand only"),
    ("platform/workspace/a.cc", '#include "job/spec.h"', "must not include job"),
    ("platform/cli/a.cc", '#include "workspace/sources.h"', None),
    ("platform/api/a.cc", '#include "workspace/manifest.h"', "must not include workspace"),
    ("platform/api/a.cc", "#include <nlohmann/json.hpp>", None),
    ("platform/api/a.h", "#include <nlohmann/json_fwd.hpp>", None),
    ("platform/api/a.h", "#include <nlohmann/json.hpp>", "may stand only"),
    ("platform/base/yaml.cc", "#include <yaml-cpp/yaml.h>", None),
    ("platform/job/a.cc", "#include <yaml-cpp/yaml.h>", "may stand only"),
    ("examples/digits/a.cc", "#include <mpi.h>", "may stand only"),
    ("platform/launch/a.cc", "#include <thread>", "is pure"),
    ("platform/launch/a.cc", "#include <fstream>", "is pure"),
    ("platform/launch/a.cc", "#include <unistd.h>", "is pure"),
    ("platform/launch/a.cc", "#include <sys/socket.h>", "is pure"),
    ("platform/launch/a.cc", '#include "base/files.h"', "is pure"),
    ("platform/launch/a.cc", '#include "base/random.h"', None),
    ("platform/engine/a.cc", "#include <thread>\n#include <unistd.h>", None),
    ("platform/job/a.cc", "auto t = std::chrono::system_clock::now();", "reads a clock"),
    ("platform/job/a.cc", "auto t = steady_clock::now ();", "reads a clock"),
    ("platform/job/a.cc", "base::SystemClock clock;", "reads a clock"),
    ("platform/job/a.cc", "auto t = time(nullptr);", "reads a clock"),
    ("platform/job/a.cc", "int n = 1'000; auto t = steady_clock::now(); char c = 'x';", "reads a clock"),
    ("platform/job/a.cc", '// steady_clock::now()\nauto s = "system_clock::now()";', None),
    ("platform/job/a.cc", "auto now = clock.now(); std::filesystem::path folder;", None),
    ("platform/schedule/a.cc", "std::random_device device;", "randomness"),
    ("platform/launch/a.cc", "std::filesystem::create_directories(p);", "file system"),
    ("platform/launch/a.cc", 'auto home = std::getenv("HOME");', "surroundings"),
    ("platform/control/a.cc", "auto t = std::chrono::system_clock::now();", None),
    ("platform/schedule/a.cc", '#include "words/sentence.h"', "must not include words"),
    ("platform/schedule/a_test.cc", '#include "words/sentence.h"', None),
    ("platform/schedule/test_a.h", '#include "words/sentence.h"', None),
    ("platform/job/a_test.cc", '#include "words/sentence.h"', "must not include words"),
    ("platform/server/a.cc", '#include "words/sight.h"', None),
    ("platform/cli/a.cc", 'if (error.what.find("x") == 0) {}', "reads a sentence"),
    ("platform/cli/a.cc", 'if (error.advice.starts_with("log in")) {}', "reads a sentence"),
    ("platform/cli/a.cc", 'if (answer.error().what == "gone") {}', "reads a sentence"),
    ("platform/cli/a.cc", "at = words::sentence(job.reason)\n  .find(mark);", "reads a sentence"),
    ("platform/cli/a.cc", "found = what.substr(kSubject.size());", "reads a sentence"),
    ("platform/cli/a_test.cc", 'if (error.what.find("x") == 0) {}', None),
    ("platform/cli/a.cc", '// error.what.find("x")\nauto t = "error.what.find(";', None),
    ("platform/cli/a.cc", "text = error.what + other.advice; record.text.find(mark);", None),
)
EXAMPLE_TREE = {
    "platform/engine/shim.h": "",
    "platform/cli/neighbour.h": "",
    "platform/make_engine.h": "",
    "platform/http/server.h": "// boost/asio stays away\n#include <string>\n",
    "platform/http/connection.h": "#include <boost/asio/steady_timer.hpp>\n",
    "platform/http/indirect.h": '#include "http/connection.h"\n',
    "collective/src/transport/socket.h": "",
    "examples/digits/network.h": "",
}


def self_test():
    """One sentence for each example with a wrong result."""
    wrong = []
    private = private_headers(EXAMPLE_TREE)
    for path, code, word in EXAMPLES:
        faults = [sentence for _, sentence in faults_of(path, code, EXAMPLE_TREE, private)]
        if word is None and faults:
            wrong.append(f"{path}: {code!r} is fine, yet: {faults}")
        elif word is not None and not (len(faults) == 1 and word in faults[0]):
            wrong.append(f"{path}: {code!r} should be one fault with {word!r}, got: {faults}")
    code = '\n/* a\n b */\n#include "cli/a.h"\n'
    faults = list(faults_of("platform/job/a.cc", code, EXAMPLE_TREE, private))
    if [line for line, _ in faults] != [4]:
        wrong.append(f"the fault stands on line 4, got: {faults}")
    return wrong


def tree_faults():
    """(number of files read, the faults of the tree as file:line: sentence)."""
    paths = [path for part in SCANNED for path in sorted((ROOT / part).rglob("*"))
             if path.suffix in SUFFIXES and path.is_file()]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8", errors="replace")
             for path in paths}
    private = private_headers(texts)
    faults = [f"{name}:{line}: {sentence}" for name, text in texts.items()
              for line, sentence in faults_of(name, text, set(texts), private)]
    return len(paths), faults


def main():
    wrong = self_test()
    for sentence in wrong:
        print(f"self test: {sentence}", file=sys.stderr)
    if wrong:
        return 1
    if "--self-test" in sys.argv[1:]:
        print(f"self test: {len(EXAMPLES) + 1} examples judged rightly")
        return 0
    count, faults = tree_faults()
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{count} files read, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
