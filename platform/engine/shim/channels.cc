#include "engine/shim/channels.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/files.h"
#include "engine/pipe.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

Result<Pair> make_output_pipe() {
  MUSTER_TRY(Pipe pipe, make_pipe());
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return Pair{.here = std::move(pipe.reader), .there = std::move(pipe.writer)};
}

Result<Pair> make_input_pipe() {
  MUSTER_TRY(Pipe pipe, make_pipe());
  ::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
  return Pair{.here = std::move(pipe.writer), .there = std::move(pipe.reader)};
}

Result<Pair> make_control() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return base::system_error("cannot make a socket", errno);
  }
  return Pair{.here = UniqueFd(ends[0]), .there = UniqueFd(ends[1])};
}

Result<UniqueFd> in_memory_file(std::string_view content) {
  UniqueFd file(::memfd_create("plan", MFD_CLOEXEC));
  if (!file) return base::system_error("cannot make a file in memory", errno);
  MUSTER_CHECK(base::write_all(file.get(), content));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace muster::engine
