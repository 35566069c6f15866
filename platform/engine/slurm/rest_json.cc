#include "engine/slurm/rest_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "engine/slurm/rest_json_parts.h"
#include "engine/slurm/rest_words.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;
using rest::at;
using rest::json;

namespace rest {

const json& at(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array()) return {};
  std::string joined;
  for (const std::string& text : texts_at(object, key))
    joined += (joined.empty() ? "" : ",") + text;
  return joined;
}

std::vector<std::string> texts_at(const json& object, std::string_view key) {
  std::vector<std::string> texts;
  const auto add = [&](const json& value) {
    if (!value.is_string()) return;
    for (const std::string& text : base::split(value.get_ref<const std::string&>(), ',')) {
      const std::string_view word = base::trimmed(text, " \t");
      if (!word.empty()) texts.emplace_back(word);
    }
  };
  const json& found = at(object, key);
  if (found.is_array()) {
    for (const json& value : found) add(value);
  } else {
    add(found);
  }
  return texts;
}

std::optional<int64_t> number_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  if (found.is_number_unsigned()) {
    const auto number = found.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (found.is_number_integer()) return found.get<int64_t>();
  if (found.is_string()) return base::number_of<int64_t>(found.get_ref<const std::string&>());
  if (!found.is_object()) return std::nullopt;
  const auto is_true = [&](std::string_view name) {
    const json& flag = at(found, name);
    return flag.is_boolean() && flag.get<bool>();
  };
  if (!is_true("set") || is_true("infinite") || at(found, "number").is_object()) {
    return std::nullopt;
  }
  return number_at(found, "number");
}

Error no_such_answer(const std::string& what, const std::string& why) {
  return {.code = ErrorCode::kInternal,
          .what = "what slurmrestd answers cannot be read as " + what + ": " + why};
}

Result<json> parse(std::string_view body, const std::string& what,
                   const std::unordered_set<std::string_view>& wanted) {
  const auto keeps = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
    return event != json::parse_event_t::key ||
           wanted.contains(parsed.get_ref<const std::string&>());
  };
  constexpr bool kThrows = false;
  json root = json::parse(body, keeps, kThrows);
  if (root.is_discarded()) return no_such_answer(what, "it is no JSON");
  if (!root.is_object()) return no_such_answer(what, "it is no JSON object");
  return root;
}

}  // namespace rest

namespace {

constexpr size_t kLongestFault = 1000;

int fault_number(const json& fault) {
  for (const std::string_view name : {"error_number", "error_code", "errno"}) {
    const auto number = rest::number_at(fault, name);
    if (number && *number != 0 && *number >= INT32_MIN && *number <= INT32_MAX) {
      return static_cast<int>(*number);
    }
  }
  return 0;
}

/// `error` is Slurm's name of the number, `description` what was being done.
std::string fault_text(const json& fault) {
  const std::string error = rest::text_at(fault, "error");
  const std::string description = rest::text_at(fault, "description");
  if (description.empty() || description.find(error) != std::string::npos) {
    return rest::one_line(description.empty() ? error : description, kLongestFault);
  }
  return rest::one_line(error.empty() ? description : error + " (" + description + ")",
                        kLongestFault);
}

}  // namespace

std::vector<RestFault> read_rest_faults(std::string_view body) {
  const auto root = rest::parse(
      body, "faults", {"errors", "error", "description", "error_number", "error_code", "errno"});
  std::vector<RestFault> faults;
  if (!root) return faults;
  const json& errors = at(*root, "errors");
  if (!errors.is_array()) return faults;
  for (const json& fault : errors) {
    RestFault one{.number = fault_number(fault), .text = fault_text(fault)};
    if (one.number != 0 || !one.text.empty()) faults.push_back(std::move(one));
  }
  return faults;
}

Result<uint64_t> read_rest_submitted(std::string_view body) {
  auto root = rest::parse(body, "a submitted job", {"job_id", "set", "infinite", "number"});
  if (!root) return std::move(root).error();
  const auto id = rest::number_at(*root, "job_id");
  return id && *id > 0 ? static_cast<uint64_t>(*id) : uint64_t{0};
}

Result<RestPaths> read_rest_paths(std::string_view body) {
  // Of a description of megabytes only the names of two levels are kept.
  constexpr int kMembers = 1;
  constexpr int kMethods = 3;
  const auto keeps = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::key) return true;
    if (depth == kMembers) return parsed == "paths";
    return depth <= kMethods;
  };
  const std::string what = "its description (OpenAPI)";
  constexpr bool kThrows = false;
  const json root = json::parse(body, keeps, kThrows);
  if (root.is_discarded()) return rest::no_such_answer(what, "it is no JSON");
  const json& paths = at(root, "paths");
  if (!paths.is_object()) return rest::no_such_answer(what, "it has no paths");
  RestPaths result;
  for (const auto& [path, methods] : paths.items()) {
    const std::vector<std::string> parts = base::split(path, '/');
    if (parts.size() < 3 || (parts[1] != "slurm" && parts[1] != "slurmdb")) continue;
    const int version = rest_version_of(parts[2]);
    if (version == 0 || !methods.is_object()) continue;
    for (const auto& method : methods.items()) {
      std::string name = method.key();
      std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
        return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - ('a' - 'A')) : letter;
      });
      result.served.push_back(path + " " + name);
    }
    result.versions.push_back(version);
  }
  std::sort(result.versions.begin(), result.versions.end());
  result.versions.erase(std::unique(result.versions.begin(), result.versions.end()),
                        result.versions.end());
  return result;
}

Result<RestPing> read_rest_ping(std::string_view body) {
  auto root = rest::parse(body, "an answer to ping",
                          {"meta", "Slurm", "slurm", "release", "pings", "ping", "pinged"});
  if (!root) return std::move(root).error();
  const json& meta = at(*root, "meta");
  RestPing result{.version = rest::text_at(at(meta, "slurm"), "release")};
  if (result.version.empty()) result.version = rest::text_at(at(meta, "Slurm"), "release");
  const json& pings = at(*root, "pings");
  if (pings.is_array()) {
    result.is_up = std::any_of(pings.begin(), pings.end(), [](const json& ping) {
      return rest::text_at(ping, "pinged") == "UP" || rest::text_at(ping, "ping") == "UP";
    });
  }
  return result;
}

}  // namespace muster::engine::slurm
