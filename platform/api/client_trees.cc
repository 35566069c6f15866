// The client's requests on files for jobs, on machines by name, and on a job's labels.

#include <algorithm>

#include "api/client.h"
#include "api/label_wire.h"
#include "api/machine_wire.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

namespace {

constexpr std::string_view kTrees = "trees";
constexpr std::string_view kChunks = "chunks";
constexpr std::string_view kMissing = "missing";

Result<void> check_tree(const std::string& project, const std::string& id) {
  MUSTER_CHECK(check_project_name(project));
  return check_segment(id, "tree", "a tree's id is the hash of what it holds");
}

}  // namespace

Result<TreeInfo> Client::tree(const std::string& project, const std::string& id) {
  MUSTER_CHECK(check_tree(project, id));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kTrees, id))));
  return tree_from_json(response.body);
}

Result<std::vector<std::string>> Client::missing_chunks(const std::string& project,
                                                        const std::vector<std::string>& chunks) {
  MUSTER_CHECK(check_project_name(project));
  constexpr size_t kMostIds = 40'000;  // 67 bytes each: well below what a body may have
  std::vector<std::string> missing;
  for (size_t begin = 0; begin < chunks.size(); begin += kMostIds) {
    const auto from = chunks.begin() + static_cast<ptrdiff_t>(begin);
    const auto count = static_cast<ptrdiff_t>(std::min(kMostIds, chunks.size() - begin));
    MUSTER_TRY(const http::Response response,
               call(request_for("POST", below_project(project, kChunks, kMissing),
                                chunk_ids_to_json({from, from + count}))));
    MUSTER_TRY(const auto some, chunk_ids_from_json(response.body));
    missing.insert(missing.end(), some.begin(), some.end());
  }
  return missing;
}

Result<void> Client::put_chunks(const std::string& project, std::string body) {
  MUSTER_CHECK(check_project_name(project));
  http::Request request = request_for("PUT", below_project(project, kChunks), std::move(body));
  request.headers["content-type"] = kChunksType;
  MUSTER_CHECK(call(request));
  return {};
}

Result<TreeInfo> Client::keep_tree(const std::string& project, const std::string& id,
                                   const std::vector<std::string>& manifest_chunks) {
  MUSTER_CHECK(check_tree(project, id));
  MUSTER_TRY(const http::Response response,
             call(request_for("PUT", below_project(project, kTrees, id),
                              chunk_ids_to_json(manifest_chunks))));
  return tree_from_json(response.body);
}

Result<job::MachineTypes> Client::machine_types() {
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", std::string(kMachineTypesPath))));
  return machine_types_from_json(response.body);
}

Result<job::Job> Client::set_labels(
    const std::string& name, const std::map<std::string, std::optional<std::string>>& labels) {
  MUSTER_CHECK(check_job_name(name));
  http::Request request = job_request("PATCH", name);
  request.headers["content-type"] = "application/json";
  request.body = label_changes_to_json(labels);
  MUSTER_TRY(const http::Response response, call(request));
  return job_from_json(response.body);
}

}  // namespace muster::api
