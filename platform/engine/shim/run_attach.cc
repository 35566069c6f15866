#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "engine/shim/folder_socket.h"
#include "engine/shim/plan.h"
#include "engine/shim/run.h"
#include "engine/shim/stdio_link.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

/// Between the messages and the socket of the task's shim.
class Bridge {
 public:
  Bridge(StdioLink& link, UniqueFd socket) : link_(link), socket_(std::move(socket)) {}

  /// Until the task lets go (true), or hung up.
  bool run() {
    while (!link_.is_over() && socket_) turn();
    return !link_.is_over();
  }

 private:
  void turn() {
    const int events = (link_.has_room() ? POLLIN : 0) | (packets_.empty() ? 0 : POLLOUT);
    // An end is told also of one that nothing is asked of: it is heard when there is room for it.
    std::vector<pollfd> polled{{events == 0 ? -1 : socket_.get(), static_cast<short>(events), 0}};
    link_.watch(polled, waiting_ < StdioLink::kHigh);
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    link_.serve(std::span(polled).subspan(1));
    while (const auto message = link_.next()) heed(*message);
    if ((polled[0].revents & POLLOUT) != 0) send();
    if ((polled[0].revents & ~POLLOUT) != 0 && link_.has_room()) hear();
  }

  void heed(const RunMessage& message) {
    if (const auto* input = std::get_if<AttachInput>(&message)) {
      queue(*input);
    } else if (const auto* end = std::get_if<AttachInputEnd>(&message)) {
      queue(*end);
    } else if (const auto* size = std::get_if<AttachSize>(&message)) {
      queue(*size);
    }
  }

  void queue(const AttachMessage& message) {
    packets_.push_back(encode(message));
    waiting_ += packets_.back().size();
    send();
  }

  void send() {
    while (!packets_.empty()) {
      const std::string& packet = packets_.front();
      const ssize_t sent =
          ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
      waiting_ -= packet.size();
      packets_.pop_front();  // also where nobody takes it: its end is heard by reading
    }
  }

  void hear() {
    std::array<char, kAttachPacket> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return socket_.reset();
    link_.tell_packet({buffer.data(), static_cast<size_t>(count)});
  }

  StdioLink& link_;
  UniqueFd socket_;
  std::deque<std::string> packets_;  ///< that wait to be sent
  size_t waiting_ = 0;               ///< bytes in them
};

/// The shim lets go when the exit record stands; without one it is lost, or had too many.
ExitRecord end_of_run(const TaskFolder& folder) {
  const auto text = base::read_file(folder.exit(), 64 << 10);
  const auto record = text ? decode_exit(*text) : base::Result<ExitRecord>(text.error());
  if (record) return *record;
  return {.status = {.lost = true, .error = "the task's terminal is gone"}, .ended = {}};
}

}  // namespace

int run_attach(const char* task_folder) {
  ::signal(SIGPIPE, SIG_IGN);
  StdioLink link;
  auto socket = connect_in(task_folder, "attach");
  if (!socket) {
    link.tell(RunRefused{{.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
    link.flush();
    return 1;
  }
  link.tell(RunBegun{});
  if (!Bridge(link, *std::move(socket)).run()) return 0;
  link.tell(RunEnded{end_of_run({task_folder})});
  link.flush();
  return 0;
}

}  // namespace muster::engine
