#include "dialects/gradient/api_key.h"

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace muster::dialects::gradient {

namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::ordered_json;

constexpr const char* kApiKey = "apiKey";

/// What the file holds; an empty object where there is none.
Result<ordered_json> read(const fs::path& file) {
  constexpr size_t kMostBytes = 1 << 20;
  auto text = base::read_file(file, kMostBytes);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return ordered_json::object();
    return std::move(text).error();
  }
  ordered_json json = ordered_json::parse(*text, nullptr, false);
  if (json.is_object()) return json;
  return Error{.code = ErrorCode::kInvalid,
               .what = file.string() + " is not a JSON object",
               .advice = "mend it, or remove it and run: gradient apiKey"};
}

Result<void> write(const fs::path& file, const ordered_json& json) {
  MUSTER_CHECK(base::make_private_folder(file.parent_path()));
  return base::write_file(file, json.dump(2) + "\n");
}

}  // namespace

Result<fs::path> config_file(const cli::Environment& environment) {
  const auto home = environment.find("HOME");
  if (home == environment.end() || !home->second.starts_with('/')) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "there is no home folder to keep a key in",
                 .advice = "set PAPERSPACE_API_KEY instead"};
  }
  return fs::path(home->second) / ".paperspace" / "config.json";
}

Result<std::string> kept_api_key(const fs::path& file) {
  MUSTER_TRY(const ordered_json json, read(file));
  const auto found = json.find(kApiKey);
  if (found == json.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return Error{.code = ErrorCode::kInvalid,
               .what = file.string() + ": apiKey is not a text",
               .advice = "keep it anew: gradient apiKey"};
}

Result<void> keep_api_key(const fs::path& file, const std::string& key) {
  MUSTER_TRY(ordered_json json, read(file));
  json[kApiKey] = key;
  return write(file, json);
}

Result<void> forget_api_key(const fs::path& file) {
  MUSTER_TRY(ordered_json json, read(file));
  if (json.erase(kApiKey) == 0) return {};
  if (!json.empty()) return write(file, json);
  std::error_code failure;
  fs::remove(file, failure);
  if (failure) return base::system_error("cannot remove " + file.string(), failure.value());
  return {};
}

}  // namespace muster::dialects::gradient
