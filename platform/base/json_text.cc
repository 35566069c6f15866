#include "base/json_text.h"

#include <nlohmann/json.hpp>

namespace muster::base {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int kOneLine = -1;
constexpr int kIndent = 2;

template <class Json>
std::string printed(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const json& value) {
  return printed(value, kOneLine);
}

std::string json_text(const ordered_json& value) {
  return printed(value, kOneLine);
}

std::string indented_json_text(const json& value) {
  return printed(value, kIndent);
}

std::string indented_json_text(const ordered_json& value) {
  return printed(value, kIndent);
}

json parse_json(std::string_view text) {
  return json::parse(text, nullptr, false);
}

ordered_json parse_ordered_json(std::string_view text) {
  return ordered_json::parse(text, nullptr, false);
}

json parse_json_or_throw(std::string_view text) {
  return json::parse(text);
}

std::string cbor_text(const json& value) {
  std::string text;
  json::to_cbor(value, text);
  return text;
}

json parse_cbor_or_throw(std::string_view text) {
  return json::from_cbor(text);
}

}  // namespace muster::base
