// Reading what others have written as JSON: a member that is missing or null is an empty one, one
// of another type is an error.
//
// Pure.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster::engine {

/// What is at `key`, or null.
const nlohmann::json& at(const nlohmann::json& object, std::string_view key);

/// Of std::string, bool, int, int64_t, uint32_t, and of std::string's vectors and maps.
/// REQUIRES: within read_json(): it throws where the type is another.
template <class Value>
Value value_at(const nlohmann::json& object, std::string_view key);

/// Hands over what is parsed; kInternal, which names `what`, where that cannot be done or `read`
/// meets another type than it expects.
base::Result<void> parse_json(std::string_view text, const std::string& what,
                              const std::function<void(const nlohmann::json&)>& read);

/// What `read` makes of the text.
template <class Value, class Read>
base::Result<Value> read_json(std::string_view text, const std::string& what, Read read) {
  std::optional<base::Result<Value>> value;
  const auto parsed =
      parse_json(text, what, [&](const nlohmann::json& whole) { value.emplace(read(whole)); });
  if (!parsed) return parsed.error();
  return *std::move(value);
}

}  // namespace muster::engine
