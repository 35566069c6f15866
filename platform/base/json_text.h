// JSON and CBOR to and from text. nlohmann's parsers and printers are compiled in json_text.cc
// alone: a source that calls them itself takes half a second longer to compile.
//
// Pure; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace muster::base {

/// On one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value);
std::string json_text(const nlohmann::ordered_json& value);

/// On many lines, indented by two blanks.
std::string indented_json_text(const nlohmann::json& value);
std::string indented_json_text(const nlohmann::ordered_json& value);

/// A discarded value if the text is not JSON.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// Throws nlohmann::json::parse_error if the text is not JSON: for readers that catch the exceptions
/// of missing members, too.
nlohmann::json parse_json_or_throw(std::string_view text);

/// CBOR stores byte strings unchanged, and is quick to read.
std::string cbor_text(const nlohmann::json& value);
/// Throws nlohmann::json::parse_error if the text is not CBOR.
nlohmann::json parse_cbor_or_throw(std::string_view text);

}  // namespace muster::base
