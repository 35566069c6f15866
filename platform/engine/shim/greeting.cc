#include "engine/shim/greeting.h"

namespace muster::engine {

Greeting read_greeting(std::string_view bytes) {
  if (bytes.starts_with(kSshGreeting)) return Greeting::kSsh;
  if (bytes.starts_with(kRshGreeting)) return Greeting::kRsh;
  const bool may_become_one = kSshGreeting.starts_with(bytes) || kRshGreeting.starts_with(bytes);
  return may_become_one ? Greeting::kUnfinished : Greeting::kNone;
}

}  // namespace muster::engine
