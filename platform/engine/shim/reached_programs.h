// What others run in a task through its remote shell, which is sshd or Muster's own: the ranks of a
// launcher, for the most part.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace muster::engine {

/// The living processes below this one, but for those of the remote shell itself, whose program is
/// `shell`.
std::vector<pid_t> reached_programs(std::string_view shell);

}  // namespace muster::engine
