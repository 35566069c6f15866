#include "engine/process/ssh_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "engine/shim/greeting.h"

namespace muster::engine {

namespace {

constexpr std::chrono::milliseconds kSshProbePause{200};

}  // namespace

SshProbe::SshProbe(base::EventLoop& loop, std::string address, int port,
                   std::function<void()> answered)
    : loop_(loop), address_(std::move(address)), port_(port), answered_(std::move(answered)) {
  connect();
}

void SshProbe::connect() {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port_));
  ::inet_pton(AF_INET, address_.c_str(), &where.sin_addr);
  interest_.reset();
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return retry();
  const int result =
      ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where);
  if (result != 0 && errno != EINPROGRESS) return retry();
  interest_ = loop_.when_writable(socket_.get(), [this] { connected(); });
}

void SshProbe::connected() {
  heard_.clear();
  interest_.reset();
  interest_ = loop_.when_readable(socket_.get(), [this] { hear(); });
}

void SshProbe::hear() {
  std::array<char, 256> buffer{};
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) return retry();
  heard_.append(buffer.data(), static_cast<size_t>(count));
  const Greeting greeting = read_greeting(heard_);
  if (greeting == Greeting::kUnfinished) return;
  if (greeting == Greeting::kNone) return retry();
  if (greeting == Greeting::kSsh) {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), kSshAnswer.data(), kSshAnswer.size(), MSG_NOSIGNAL);
  }
  interest_.reset();
  socket_.reset();
  answered_();
}

void SshProbe::retry() {
  interest_.reset();
  socket_.reset();
  interest_ = loop_.after(kSshProbePause, [this] { connect(); });
}

}  // namespace muster::engine
