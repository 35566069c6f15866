#include "cli/common/output.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace muster::cli {

namespace {

using nlohmann::ordered_json;

/// Whether a string read back without quotes would still be that string. yaml-cpp's emitter writes
/// "true" and "123" without quotes, and they would come back as a boolean and a number.
bool is_plain_word(const std::string& text) {
  constexpr std::array<std::string_view, 10> kMeaningful{"true", "false", "yes", "no", "on",
                                                         "off",  "null",  "y",   "n",  "nan"};
  std::string lower = text;
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  const bool starts_well =
      !lower.empty() && ((lower[0] >= 'a' && lower[0] <= 'z') || lower[0] == '/');
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyz0123456789_-./+=@";
  return starts_well && lower.find_first_not_of(kSafe) == std::string::npos &&
         std::find(kMeaningful.begin(), kMeaningful.end(), lower) == kMeaningful.end();
}

void emit_string(YAML::Emitter& out, const std::string& text) {
  if (!is_plain_word(text)) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const ordered_json& value) {
  // An empty collection in block style would be no text at all.
  if (value.is_structured() && value.empty()) out << YAML::Flow;
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key;
      emit_string(out, key);
      out << YAML::Value;
      emit(out, item);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const ordered_json& item : value) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    emit_string(out, value.get_ref<const std::string&>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // numbers, true and false are spelled alike in both
  }
}

}  // namespace

std::string json_to_yaml(std::string_view json) {
  const ordered_json value = ordered_json::parse(json, nullptr, false);
  YAML::Emitter out;
  emit(out, value.is_discarded() ? ordered_json(std::string(json)) : value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace muster::cli
