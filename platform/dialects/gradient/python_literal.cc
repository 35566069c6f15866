#include "dialects/gradient/python_literal.h"

#include <nlohmann/json.hpp>

namespace muster::dialects::gradient {

namespace {

using nlohmann::ordered_json;  // Python keeps the order of keys, too

void append_escaped(std::string& out, char letter, char quote) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(letter);
  if (letter == quote || letter == '\\') {
    out += '\\';
    out += letter;
  } else if (letter == '\n') {
    out += "\\n";
  } else if (letter == '\r') {
    out += "\\r";
  } else if (letter == '\t') {
    out += "\\t";
  } else if (code < 0x20 || code == 0x7f) {
    out += "\\x";
    out += kDigits[code >> 4];
    out += kDigits[code & 15];
  } else {
    out += letter;
  }
}

/// In single quotes, unless that would need more escapes.
void append_text(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (const char letter : text) append_escaped(out, letter, quote);
  out += quote;
}

void append(std::string& out, const ordered_json& json);

void append_items(std::string& out, const ordered_json& json) {
  const char* separator = "";
  for (const auto& [key, value] : json.items()) {
    out += std::exchange(separator, ", ");
    if (json.is_object()) {
      append_text(out, key);
      out += ": ";
    }
    append(out, value);
  }
}

void append(std::string& out, const ordered_json& json) {
  if (json.is_null()) {
    out += "None";
  } else if (json.is_boolean()) {
    out += json.get<bool>() ? "True" : "False";
  } else if (json.is_string()) {
    append_text(out, json.get_ref<const std::string&>());
  } else if (json.is_structured()) {
    out += json.is_object() ? '{' : '[';
    append_items(out, json);
    out += json.is_object() ? '}' : ']';
  } else {
    out += json.dump();
  }
}

}  // namespace

std::optional<std::string> python_literal(std::string_view text) {
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  std::string out;
  append(out, json);
  return out;
}

std::string python_literal(const std::map<std::string, std::string>& values) {
  std::string out = "{";
  for (const auto& [key, value] : values) {
    if (out.size() > 1) out += ", ";
    append_text(out, key);
    out += ": ";
    append_text(out, value);
  }
  return out + "}";
}

}  // namespace muster::dialects::gradient
