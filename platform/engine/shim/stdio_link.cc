#include "engine/shim/stdio_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/frame.h"

namespace muster::engine {

namespace {

constexpr short kGone = POLLERR | POLLHUP | POLLNVAL;

}  // namespace

StdioLink::StdioLink() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
}

void StdioLink::watch(std::vector<pollfd>& polled, bool wants_more) const {
  const int input = POLLRDHUP | (wants_more ? POLLIN : 0);
  polled.push_back({STDIN_FILENO, static_cast<short>(input), 0});
  polled.push_back({STDOUT_FILENO, static_cast<short>(out_.empty() ? 0 : POLLOUT), 0});
}

void StdioLink::serve(std::span<const pollfd> polled) {
  const short input = polled[0].revents;
  const short output = polled[1].revents;
  // Whoever hangs up is heard at once: what they sent before is no longer wanted.
  if ((input & (kGone | POLLRDHUP)) != 0 || (output & kGone) != 0) over_ = true;
  if (over_) return;
  if ((input & POLLIN) != 0) read();
  if ((output & POLLOUT) != 0) write();
}

void StdioLink::read() {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    over_ = true;
    return;
  }
  reader_.add({buffer.data(), static_cast<size_t>(count)});
}

void StdioLink::write() {
  const ssize_t count = ::write(STDOUT_FILENO, out_.data(), out_.size());
  if (count >= 0) {
    out_.erase(0, static_cast<size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    over_ = true;
  }
}

void StdioLink::tell_packet(std::string_view packet) {
  base::append_frame(out_, packet.front(), packet.substr(1));
}

std::optional<RunMessage> StdioLink::await() {
  while (true) {
    if (auto message = next()) return message;
    if (is_over()) return std::nullopt;
    std::vector<pollfd> polled;
    watch(polled, true);
    if (::poll(polled.data(), polled.size(), -1) >= 0) serve(polled);
  }
}

void StdioLink::flush() {
  while (!out_.empty() && !over_) {
    std::vector<pollfd> polled;
    watch(polled, false);
    if (::poll(polled.data(), polled.size(), -1) >= 0) serve(polled);
  }
}

}  // namespace muster::engine
