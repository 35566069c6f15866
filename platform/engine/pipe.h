// A pipe, both of its ends close-on-exec.
//
// I/O; thread-safe.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

struct Pipe {
  base::UniqueFd reader;
  base::UniqueFd writer;
};

inline base::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

}  // namespace muster::engine
