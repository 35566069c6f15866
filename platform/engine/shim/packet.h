// A packet of a task's sockets (attach_wire.h, run_wire.h): a letter that says what it is, then the
// rest.
#pragma once

#include <string>
#include <string_view>

namespace muster::engine {

inline std::string packet(char type, std::string_view rest) {
  return std::string(1, type).append(rest);
}

}  // namespace muster::engine
