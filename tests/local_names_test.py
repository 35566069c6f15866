#!/usr/bin/env python3
"""Checks that names that are local to a file are unique within its folder.

    tests/local_names_test.py [FOLDER...]     checks itself, then the tree, or only files below the folders
    tests/local_names_test.py --self-test     checks only that bad examples are caught

The build compiles the sources of a target in batches (unity builds, cmake/MusterTargets.cmake). Two
functions with one name in the anonymous namespaces of two files are then one name with two meanings:
an error when their parameters are equal, and a silent change of overload resolution when they are
not. A batch holds files of one target, and names collide only within one enclosing namespace, so the
rule is: in each of the project's parts, no two sources of one namespace declare the same local name,
and no local function has the name of a function in a header of that namespace.
Tests are compiled apart from what they test, and are compared with each other only.

A type outside of an anonymous namespace has one definition in its namespace. Two would break the rule of
one definition, which no compiler checks: the linker keeps one of the two destructors, for both types.

The check reads the text and compiles nothing. It relies on the layout of clang-format: declarations of
a namespace start in the first column.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("platform", "collective", "training", "examples", "bench", "tests")

# Each file is compiled into several targets, or alone, and never in a batch with its neighbours.
ALONE = {
    # The peers' programs: one source, one program.
    "bench/collective/peer_gloo.cc",
    "bench/collective/peer_grpc.cc",
    "bench/collective/peer_mpi.cc",
    "bench/allreduce.cc",
    "bench/first_line.cc",
    "examples/resnet20/bench.cc",
    "examples/resnet20/main.cc",
}

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)
OPEN = re.compile(r"^namespace \{")
CLOSE = re.compile(r"^\}\s+// namespace$")
STATIC_FUNCTION = re.compile(r"^static\s[^=]*?\b(\w+)\(")
# Words that cannot begin the declaration of a function or of a variable.
NOT = r"(?!(?:return|if|for|while|switch|else|namespace|using|case|public|private|protected|template|struct|class|enum|union|static_assert|extern)\b)"
DECLARATIONS = (
    re.compile(r"^(?:struct|class|enum(?: class)?|union)\s+(?:\[\[.*?\]\]\s*)?(\w+)"),
    re.compile(r"^(?:struct|class|enum(?: class)?|union)\s+\w+.*?\}\s*(\w+)"),
    re.compile(r"^using\s+(\w+)\s*="),
    re.compile(r"^namespace\s+(\w+)\s*="),
    re.compile(rf"^{NOT}[A-Za-z_][^=]*?\b([A-Za-z_]\w*)\("),
    re.compile(rf"^{NOT}[A-Za-z_][\w:<>,*& .()]*?[ *&>](\w+)(?:\[.*?\])*\s*(?:=|\{{|;)"),
)
# Macros whose arguments are names of tests, which are unique within their suite.
MACRO = re.compile(r"^[A-Z][A-Z0-9_]+\(")


def local_names(text):
    """The names that are local to a source, each with its line number."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if OPEN.match(line):
            inside = True
        elif CLOSE.match(line):
            inside = False
        elif not inside:
            found = STATIC_FUNCTION.match(line)
            if found:
                yield found.group(1), number
        elif not MACRO.match(line):
            for declaration in DECLARATIONS:
                found = declaration.match(line)
                if found:
                    yield found.group(1), number
                    break


def neighbourhood(path, text):
    """Sources with the same value may come into one batch."""
    found = NAMESPACE.search(text)
    namespace = found.group(1) if found else str(Path(path).parent)
    is_test = path.endswith("_test.cc") or Path(path).name.startswith("test_")
    return path.split("/")[0], namespace, is_test


FREE_FUNCTION = re.compile(rf"^{NOT}[A-Za-z_][^=(]*?[ *&>](\w+)\(")

# Intended overloads: each has its own parameter type.
OVERLOADED = {"append", "describe", "parse", "to_string"}


def functions_of_headers(sources):
    """(neighbourhood of a source, name) -> where a header declares a function of that name."""
    found = {}
    for path, text in sources.items():
        if not path.endswith(".h"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            function = FREE_FUNCTION.match(line)
            if function and not MACRO.match(line):
                found.setdefault((neighbourhood(path, text), function.group(1)), f"{path}:{number}")
    return found


def faults_of(sources):
    """One sentence for each name that several of the sources (path -> text) declare."""
    yield from clashes_with_headers(sources)
    yield from types_defined_twice(sources)
    sources = {path: text for path, text in sources.items() if path.endswith(".cc")}
    places = defaultdict(dict)
    for path, text in sources.items():
        if path in ALONE:
            continue
        for name, line in local_names(text):
            places[neighbourhood(path, text), name].setdefault(path, line)
    for (_, name), files in sorted(places.items(), key=lambda item: (sorted(item[1]), item[0][1])):
        if len(files) > 1:
            where = ", ".join(f"{path}:{line}" for path, line in sorted(files.items()))
            yield f"the local name '{name}' stands in {len(files)} files of one folder: {where}"


def clashes_with_headers(sources):
    declared = functions_of_headers(sources)
    for path, text in sources.items():
        if not path.endswith(".cc") or path in ALONE:
            continue
        own = set(re.findall(r'^#include "([^"]+)"', text, re.M))
        for name, line in local_names(text):
            where = declared.get((neighbourhood(path, text), name))
            # A source that includes the header has been compiled with both.
            if where and name not in OVERLOADED and not any(where.split(":")[0].endswith(h) for h in own):
                yield f"the local name '{name}' ({path}:{line}) is a function of its namespace, too: {where}"


TYPE = re.compile(r"^(?:struct|class)\s+(\w+)\s*(?:final\s*)?(?::[^:;][^;]*)?\{")
END = re.compile(r"^\}\s+// (?:anonymous )?namespace")


def types_of(text):
    """The types that a file defines outside of anonymous namespaces, each with its line number."""
    within = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"^namespace ?([\w:]*) ?\{", line)
        if opened:
            within.append(opened.group(1))
        elif END.match(line) and within:
            within.pop()
        elif (found := TYPE.match(line)) and within and "" not in within:
            yield "::".join([*within, found.group(1)]), number


def types_defined_twice(sources):
    places = defaultdict(dict)
    for path, text in sources.items():
        if path in ALONE:
            continue
        for name, line in types_of(text):
            places[name].setdefault(path, line)
    for name, files in sorted(places.items()):
        if len(files) > 1:
            where = ", ".join(f"{path}:{line}" for path, line in sorted(files.items()))
            yield f"the type '{name}' is defined in {len(files)} files: {where}"


def tree():
    """path -> text of every source and header of the project."""
    sources = {}
    for part in PARTS:
        for path in sorted([*(ROOT / part).rglob("*.cc"), *(ROOT / part).rglob("*.h")]):
            sources[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    return sources


def self_test():
    """Runs the check on examples. Returns the examples with a wrong result."""

    def source(body, namespace="muster::a"):
        return f"namespace {namespace} {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}  // namespace {namespace}\n"

    def clash(first, second, namespace="muster::a", name="y.cc"):
        return list(faults_of({"platform/a/x.cc": source(first), f"platform/a/{name}": source(second, namespace)}))

    wrong = []
    for caught in (
        "int f(int a) {\n  return a;\n}",
        "std::string f(const std::vector<int>& a,\n              int b) {",
        "template <typename T>\nResult<T> f(T a) {",
        "struct f {",
        "enum class f { kA };",
        "using f = std::vector<int>;",
        "namespace f = std::filesystem;",
        "constexpr int f = 3;",
        'constexpr std::array<Row, 2> f{{{"a", 1}}};',
        "const std::map<std::string, int> f = {",
        "std::atomic<int> f;",
    ):
        if len(clash(caught, caught)) != 1:
            wrong.append(f"not caught: {caught!r}")
    if not clash("int f(int a) {", "bool f(const std::string& b) {"):
        wrong.append("an overload in another file is not caught")
    header = "namespace muster::a {\nstd::string f(const std::string& b);\n}  // namespace muster::a\n"
    local = source("std::string f(std::string_view a) {")
    if len(list(faults_of({"platform/a/x.cc": local, "platform/a/y.h": header}))) != 1:
        wrong.append("an overload in a header is not caught")
    included = '#include "a/y.h"\n' + local
    def twice(first, second, namespace="muster::a"):
        return list(types_defined_twice({"platform/a/x.h": f"namespace muster::a {{\n{first}\n}}  // namespace muster::a\n",
                                         "platform/a/y.h": f"namespace {namespace} {{\n{second}\n}}  // namespace {namespace}\n"}))

    if len(twice("struct T {", "class T : public U {")) != 1:
        wrong.append("a type with two definitions is not caught")
    for kept, why in (
        (twice("struct T {", "class T;"), "a declaration of a type"),
        (twice("struct T {", "struct T {", "muster::b"), "a type of another namespace"),
        (twice("struct T {", "namespace {\nstruct T {\n}  // namespace"), "a local type"),
        (list(faults_of({"platform/a/x.cc": included, "platform/a/y.h": header})), "a header that is included"),
        (clash("int f() {", "int g() {"), "two names"),
        (clash("int f() {", "int f() {", namespace="muster::b"), "another namespace"),
        (clash("int f() {", "int f() {", name="y_test.cc"), "a test and what it tests"),
        (clash("  int f = 3;", "  int f = 3;"), "locals of functions"),
        (clash("TEST(A, b) {", "TEST(A, c) {"), "tests of one suite"),
    ):
        if kept:
            wrong.append(f"taken for a fault: {why}: {kept}")
    return wrong


def main():
    wrong = self_test()
    for sentence in wrong:
        print(f"self test: {sentence}", file=sys.stderr)
    if wrong or "--self-test" in sys.argv[1:]:
        return 1 if wrong else 0
    sources = tree()
    folders = tuple(sys.argv[1:])
    faults = [fault for fault in faults_of(sources) if not folders or any(folder in fault for folder in folders)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(sources)} files read, {len(faults)} faults")
    return 1 if faults or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
