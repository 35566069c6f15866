// What the halves of a shim, and whoever starts one, hand to each other.
//
// I/O; thread-safe. All descriptors are close-on-exec.
#pragma once

#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// A pipe or socket pair: one end stays here, the other goes to a child.
struct Pair {
  base::UniqueFd here;
  base::UniqueFd there;
};

/// What is written `there` is read here, non-blocking.
base::Result<Pair> make_output_pipe();
/// What is written here, non-blocking, is read `there`.
base::Result<Pair> make_input_pipe();
/// SOCK_SEQPACKET: a message comes whole or not at all.
base::Result<Pair> make_control();

/// A file that has no name, to be read from its beginning. For what must stand in no argv.
base::Result<base::UniqueFd> in_memory_file(std::string_view content);

}  // namespace muster::engine
