#include "engine/shim/change.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "engine/shim/replace_files.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using launch::PlannedFile;
using nlohmann::json;

namespace {

using Files = std::vector<PlannedFile>;

json::binary_t change_bytes(const std::string& text) {
  return json::binary_t({text.begin(), text.end()});
}

std::string string_from_binary(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

/// A hostfile in the words of the MPI that reads it.
void take_contents(const std::map<std::string, std::string>& taken_from, Files& files) {
  const Files given = files;
  for (PlannedFile& file : files) {
    const auto other = taken_from.find(file.path);
    if (other == taken_from.end()) continue;
    const auto source = std::find_if(given.begin(), given.end(), [&](const PlannedFile& each) {
      return each.path == other->second;
    });
    if (source != given.end()) file.content = source->content;
  }
}

Result<void> change_what_is_asked(const TaskFolder& folder) {
  MUSTER_TRY(const std::string asked, base::read_file("/dev/stdin"));
  MUSTER_TRY(Files files, decode_files(asked));
  return change_files(folder, std::move(files));
}

}  // namespace

std::string encode(const Files& files) {
  json list = json::array();
  for (const PlannedFile& file : files) {
    list.push_back({{"path", change_bytes(file.path)},
                    {"content", change_bytes(file.content)},
                    {"mode", file.mode}});
  }
  std::string text;
  json::to_cbor(list, text);
  return text;
}

Result<Files> decode_files(std::string_view text) {
  try {
    Files files;
    const json list = json::from_cbor(text);
    for (const json& file : list.get_ref<const json::array_t&>()) {
      files.push_back({.path = string_from_binary(file.at("path")),
                       .content = string_from_binary(file.at("content")),
                       .mode = file.at("mode").get<mode_t>()});
    }
    return files;
  } catch (const json::exception& error) {
    return Error{.code = ErrorCode::kInternal,
                 .what = std::string("cannot read which files change: ") + error.what()};
  }
}

Result<void> change_files(const TaskFolder& folder, Files files) {
  MUSTER_TRY(const std::string text, base::read_file(folder.plan()));
  MUSTER_TRY(const ShimPlan plan, decode_shim_plan(text));
  take_contents(plan.inner.taken_from, files);
  return replace_files(plan.generated.empty() ? folder.generated().string() : plan.generated,
                       files);
}

int run_change(const char* task_folder) {
  const auto changed = change_what_is_asked({task_folder});
  if (changed) return 0;
  [[maybe_unused]] const auto said = base::write_all(STDERR_FILENO, refusal_text(changed.error()));
  return 1;
}

}  // namespace muster::engine
