#include "engine/shim/port_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/shim/greeting.h"

namespace muster::engine {

namespace {

constexpr std::chrono::milliseconds kProbePause{200};

}  // namespace

void PortProbe::start(const std::string& bound, int port) {
  address_ = bound == "0.0.0.0" ? "127.0.0.1" : bound;
  port_ = port;
  connect();
}

void PortProbe::connect() {
  again_at_.reset();
  heard_.clear();
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port_));
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&where);
  const bool connects =
      socket_ && ::inet_pton(AF_INET, address_.c_str(), &where.sin_addr) == 1 &&
      (::connect(socket_.get(), address, sizeof where) == 0 || errno == EINPROGRESS);
  if (!connects) retry();
}

void PortProbe::retry() {
  socket_.reset();
  again_at_ = Steady::now() + kProbePause;
}

void PortProbe::watch(std::vector<pollfd>& polled) const {
  polled.push_back({socket_.get(), POLLIN, 0});
}

int PortProbe::milliseconds_to_wait() const {
  if (!again_at_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*again_at_ - Steady::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

bool PortProbe::serve(std::span<const pollfd> polled) {
  if (again_at_ && Steady::now() >= *again_at_) connect();
  return polled[0].revents != 0 && socket_ && hear();
}

bool PortProbe::hear() {
  std::array<char, 256> buffer;
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  heard_.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  const Greeting greeting = read_greeting(heard_);
  if (count > 0 && greeting == Greeting::kUnfinished) return false;
  if (count <= 0 || greeting == Greeting::kNone) {
    retry();
    return false;
  }
  if (greeting == Greeting::kSsh) {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), kSshAnswer.data(), kSshAnswer.size(), MSG_NOSIGNAL);
  }
  socket_.reset();
  return true;
}

}  // namespace muster::engine
