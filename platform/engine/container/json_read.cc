#include "engine/container/json_read.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace muster::engine {

using nlohmann::json;

const json& at(const json& object, std::string_view key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

template <class Value>
Value value_at(const json& object, std::string_view key) {
  const json& found = at(object, key);
  return found.is_null() ? Value() : found.get<Value>();
}

template std::string value_at(const json&, std::string_view);
template bool value_at(const json&, std::string_view);
template int value_at(const json&, std::string_view);
template int64_t value_at(const json&, std::string_view);
template uint32_t value_at(const json&, std::string_view);
template std::vector<std::string> value_at(const json&, std::string_view);
template std::map<std::string, std::string> value_at(const json&, std::string_view);

base::Result<void> parse_json(std::string_view text, const std::string& what,
                              const std::function<void(const json&)>& read) {
  try {
    read(json::parse(text));
    return {};
  } catch (const json::exception& error) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = what + " cannot be read: " + error.what()};
  }
}

}  // namespace muster::engine
