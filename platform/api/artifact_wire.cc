#include "api/artifact_wire.h"

#include "api/fields.h"

namespace muster::api {

namespace {

using Kind = Artifact::Kind;

void read(Fields& fields, Artifact& artifact) {
  fields.read("path", artifact.path, Need::kRequired);
  fields.choose(
      "kind", artifact.kind,
      {Kind::kFile, Kind::kLink, Kind::kFolder, Kind::kPipe, Kind::kSocket, Kind::kDevice},
      to_string, Need::kRequired);
  fields.read("bytes", artifact.bytes);
  fields.read("modified", artifact.modified, Need::kRequired);
  fields.read("sha256", artifact.sha256);
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kFile:
      return "file";
    case Kind::kLink:
      return "link";
    case Kind::kFolder:
      return "folder";
    case Kind::kPipe:
      return "pipe";
    case Kind::kSocket:
      return "socket";
    case Kind::kDevice:
      return "device";
  }
  return "file";
}

Parameters artifact_query_to_parameters(const ArtifactQuery& query) {
  Parameters parameters;
  if (query.checksums) parameters["checksums"] = "true";
  if (!query.prefix.empty()) parameters["prefix"] = query.prefix;
  if (!query.after.empty()) parameters["after"] = query.after;
  return parameters;
}

Result<ArtifactQuery> artifact_query_from_parameters(const Parameters& parameters) {
  ArtifactQuery query;
  const auto take = [&](const std::string& name, const std::string& value) -> std::string {
    if (name == "checksums") {
      query.checksums = value == "true";
      const bool known = query.checksums || value == "false";
      return known ? "" : in_quotes(value) + " is neither true nor false";
    }
    if (name == "prefix") query.prefix = value;
    if (name == "after") query.after = value;
    // Whose job is meant: not for this query.
    if (name == "prefix" || name == "after" || name == "project") return "";
    return unknown_parameter(name, {"checksums", "prefix", "after", "project"});
  };
  auto faults = read_parameters(parameters, take);
  if (faults.empty()) return query;
  return wrong_query("the query for artifacts is wrong", std::move(faults));
}

std::string_view artifacts_head() {
  return R"({"artifacts":[)";
}

void append_artifact(std::string& text, const Artifact& artifact, bool is_first) {
  if (!is_first) text += ',';
  JsonWriter json(text);
  json.open('{');
  json.key("path").text(artifact.path);
  json.key("kind").text(to_string(artifact.kind));
  if (artifact.kind == Kind::kFile) json.key("bytes").number(artifact.bytes);
  json.key("modified").time(artifact.modified);
  if (!artifact.sha256.empty()) json.key("sha256").text(artifact.sha256);
  json.close('}');
}

std::string artifacts_tail(bool truncated) {
  return truncated ? R"(],"truncated":true})" : "]}";
}

std::string artifacts_to_json(const ArtifactPage& page) {
  std::string text(artifacts_head());
  for (size_t i = 0; i < page.artifacts.size(); ++i) {
    append_artifact(text, page.artifacts[i], i == 0);
  }
  return text + artifacts_tail(page.truncated);
}

Result<ArtifactPage> artifacts_from_json(std::string_view text) {
  ArtifactPage page;
  MUSTER_CHECK(read_document(text, "list of artifacts", [&](Fields& fields) {
    fields.each(
        "artifacts", [&](Fields& inner) { read(inner, page.artifacts.emplace_back()); },
        Need::kRequired);
    fields.read("truncated", page.truncated);
  }));
  return page;
}

std::string etag_of(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

}  // namespace muster::api
