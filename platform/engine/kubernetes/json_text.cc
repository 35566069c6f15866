#include "engine/kubernetes/json_text.h"

#include <nlohmann/json.hpp>

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

const Json& member_at(const Json& object, MemberPath path) {
  static const Json kNone;
  const Json* found = &object;
  for (const char* const name : path) {
    if (!found->is_object()) return kNone;
    const auto member = found->find(name);
    if (member == found->end()) return kNone;
    found = &*member;
  }
  return *found;
}

std::string member_text(const Json& object, MemberPath path) {
  const Json& found = member_at(object, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

bool member_flag(const Json& object, MemberPath path) {
  const Json& found = member_at(object, path);
  return found.is_boolean() && found.get<bool>();
}

int64_t member_integer(const Json& object, MemberPath path) {
  const Json& found = member_at(object, path);
  return found.is_number_integer() ? found.get<int64_t>() : 0;
}

}  // namespace muster::engine::kubernetes
