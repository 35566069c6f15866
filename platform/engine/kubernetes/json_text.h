// Members of objects of the API server, which may be missing or of another type.
//
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster::engine::kubernetes {

/// The member of a member: at(pod, "status", "phase"). A null object if there is none.
template <class... Names>
const nlohmann::json& member_of(const nlohmann::json& object, const char* name,
                                const Names&... more) {
  static const nlohmann::json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  if (found == object.end()) return kNone;
  if constexpr (sizeof...(more) == 0) {
    return *found;
  } else {
    return member_of(*found, more...);
  }
}

/// The text there; empty if there is none.
template <class... Names>
std::string text_of(const nlohmann::json& object, const Names&... names) {
  const nlohmann::json& found = member_of(object, names...);
  return found.is_string() ? found.get<std::string>() : std::string();
}

template <class... Names>
bool flag_of(const nlohmann::json& object, const Names&... names) {
  const nlohmann::json& found = member_of(object, names...);
  return found.is_boolean() && found.get<bool>();
}

template <class... Names>
int64_t number_in(const nlohmann::json& object, const Names&... names) {
  const nlohmann::json& found = member_of(object, names...);
  return found.is_number_integer() ? found.get<int64_t>() : 0;
}

}  // namespace muster::engine::kubernetes
