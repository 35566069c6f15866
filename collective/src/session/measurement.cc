#include "session/measurement.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace muster::collective::session {

LinkReport LinkMeter::measure(const World& world, Deadline now) {
  const bool is_first = before_.empty();
  before_.resize(world.streams.size());
  LinkReport report{.window =
                        std::chrono::duration_cast<std::chrono::microseconds>(now - measured_)};
  measured_ = now;
  for (std::size_t rank = 0; rank < world.streams.size(); ++rank) {
    LinkUse total{.to = static_cast<int>(rank)};
    // Connections to one rank are used at the same time.
    for (const Descriptor& socket : world.streams[rank].sockets) {
      const SentOver sent = sent_over(socket);
      total.bytes += sent.bytes;
      total.busy = std::max(total.busy, sent.busy);
    }
    const LinkUse before = std::exchange(before_[rank], total);
    if (is_first || total.bytes <= before.bytes) continue;
    report.links.push_back(
        {.to = total.to, .bytes = total.bytes - before.bytes, .busy = total.busy - before.busy});
  }
  return report;
}

void report_metrics(const Slowness& slowness) {
  const char* const path = std::getenv("MUSTER_METRICS");
  if (path == nullptr || *path != '/') return;
  const std::string whole(path);
  const std::size_t slash = whole.rfind('/');
  // The address of a socket has room for 107 bytes; a descriptor of its folder makes any path fit.
  const Descriptor folder(::open(whole.substr(0, slash + 1).c_str(), O_PATH | O_CLOEXEC));
  const Descriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!folder || !sender) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s", folder.get(),
                whole.c_str() + slash);
  for (const std::string& text : metrics(slowness)) {
    // A report that finds no room is lost: training does not wait for it.
    static_cast<void>(::sendto(sender.get(), text.data(), text.size(), MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }
}

}  // namespace muster::collective::session
