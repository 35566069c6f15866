// Reports the progress of a training to Muster, from within the training. Copy this file: it needs
// no other file.
//
//   muster::report({{"epoch", 3}, {"epochs", 10}, {"loss", 0.183}, {"images_per_second", 5400}});
//
// Names are letters, digits and "_./-". The progress is given by epoch with epochs, by step with
// steps, or by progress (a number from 0 to 1). A report is a datagram to the job's own machine: it
// never waits, never fails, and does nothing outside of Muster. Of several processes each reports
// for its own rank.
//
// Thread-safe, as long as no thread changes the environment.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

namespace muster {

using Values = std::initializer_list<std::pair<const char*, double>>;

/// "rank=1 loss=0.183", in any locale.
inline std::string report_text(Values values) {
  std::string text;
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK", "MUSTER_RANK"}) {
    const char* rank = std::getenv(name);
    if (rank != nullptr && text.empty()) text = std::string("rank=") + rank;
  }
  for (const auto& [name, value] : values) {
    char digits[32];
    const auto written = std::to_chars(digits, digits + sizeof digits, value);
    text.append(" ").append(name).append("=").append(digits, written.ptr);
  }
  return text;
}

inline void report(Values values) {
  const char* path = std::getenv("MUSTER_METRICS");
  if (path == nullptr || *path != '/') return;
  const std::string whole(path);
  const std::size_t slash = whole.rfind('/');
  // Uses a descriptor of the folder: an address has room for 107 bytes, which a path may exceed.
  const int folder = ::open(whole.substr(0, slash + 1).c_str(), O_PATH | O_CLOEXEC);
  const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s", folder,
                whole.c_str() + slash);
  const std::string text = report_text(values);
  if (sender >= 0) {
    // A report that finds no room is lost, since a training must not wait for it.
    (void)::sendto(sender, text.data(), text.size(), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  for (const int descriptor : {sender, folder}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace muster
