#include "http/connecting.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "http/sockets.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::EventLoop;
using base::Result;
using base::UniqueFd;
using std::chrono::steady_clock;

struct NameLookup::Shared {
  std::string host;
  base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  bool answered = false;
  std::vector<IpAddress> found;
  std::string fault;
};

namespace {

IpAddress address_in(const addrinfo& info) {
  IpAddress address{.is_v4 = info.ai_family == AF_INET};
  if (address.is_v4) {
    sockaddr_in four{};
    std::memcpy(&four, info.ai_addr, sizeof four);
    std::memcpy(address.bytes.data(), &four.sin_addr, sizeof four.sin_addr);
  } else {
    sockaddr_in6 six{};
    std::memcpy(&six, info.ai_addr, sizeof six);
    std::memcpy(address.bytes.data(), &six.sin6_addr, sizeof six.sin6_addr);
  }
  return address;
}

std::vector<IpAddress> addresses_in(const addrinfo* list) {
  std::vector<IpAddress> found;
  for (; list != nullptr; list = list->ai_next) {
    if (list->ai_family != AF_INET && list->ai_family != AF_INET6) continue;
    const IpAddress address = address_in(*list);
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  return found;
}

template <class Shared>
void run_lookup(Shared& shared) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(shared.host.c_str(), nullptr, &hints, &list);
  {
    const std::scoped_lock lock(shared.mutex);
    shared.answered = true;
    if (error != 0) {
      shared.fault = ::gai_strerror(error);
    } else {
      shared.found = addresses_in(list);
      ::freeaddrinfo(list);
    }
  }
  ::eventfd_write(shared.done.get(), 1);
}

}  // namespace

Result<NameLookup> NameLookup::start(const std::string& host) {
  auto shared = std::make_shared<Shared>();
  if (!shared->done) return base::system_error("cannot look up a name", errno);
  shared->host = host;
  try {
    std::thread([shared] { run_lookup(*shared); }).detach();
  } catch (const std::system_error& error) {
    return base::system_error("cannot look up a name", error.code().value());
  }
  return NameLookup(std::move(shared));
}

int NameLookup::fd() const {
  return shared_->done.get();
}

Result<std::vector<IpAddress>> NameLookup::answer() const {
  const std::scoped_lock lock(shared_->mutex);
  if (!shared_->found.empty()) return shared_->found;
  const std::string why = !shared_->answered       ? "its name server does not answer in time"
                          : shared_->fault.empty() ? "it has no IP address"
                                                   : shared_->fault;
  return Error{.code = ErrorCode::kUnavailable,
               .what = "host '" + shared_->host + "' has no address: " + why,
               .advice = "check its name"};
}

namespace {

/// A unix socket does not report when its queue has space, so this polls.
constexpr std::chrono::milliseconds kNextTry{20};

class ToUnixSocket : public std::enable_shared_from_this<ToUnixSocket> {
 public:
  ToUnixSocket(EventLoop& loop, std::filesystem::path socket, Connected then)
      : loop_(loop), socket_(std::move(socket)), then_(std::move(then)) {}

  void try_it(std::chrono::milliseconds delay) {
    timer_ = loop_.after(delay, [this] {
      // The callback may drop the last reference to this object.
      const auto self = shared_from_this();
      auto fd = try_to_connect_to(socket_);
      const bool is_full = !fd && fd.error().code == ErrorCode::kExhausted;
      if (is_full) return try_it(kNextTry);
      std::exchange(then_, nullptr)(std::move(fd));
    });
  }

 private:
  EventLoop& loop_;
  std::filesystem::path socket_;
  Connected then_;
  EventLoop::Interest timer_;
};

class ToHost : public std::enable_shared_from_this<ToHost> {
 public:
  ToHost(EventLoop& loop, HostAndPort address, std::chrono::milliseconds patience, Connected then)
      : loop_(loop),
        address_(std::move(address)),
        end_(steady_clock::now() + patience),
        then_(std::move(then)) {}

  void begin() {
    if (const auto itself = ip_address_of(address_.host)) {
      addresses_ = {*itself};
      return soon([this] { try_next(); });
    }
    auto lookup = NameLookup::start(address_.host);
    if (!lookup) {
      return soon([this, error = lookup.error()] { finish(error); });
    }
    lookup_ = std::make_unique<NameLookup>(*std::move(lookup));
    timer_ = loop_.after(end_ - steady_clock::now(), [this] { looked_up(); });
    socket_ready_ = loop_.when_readable(lookup_->fd(), [this] { looked_up(); });
  }

 private:
  void soon(std::function<void()> what) { timer_ = loop_.after({}, std::move(what)); }

  void looked_up() {
    const auto self = shared_from_this();
    socket_ready_.reset();
    auto addresses = lookup_->answer();
    if (!addresses) return finish(std::move(addresses).error());
    addresses_ = *std::move(addresses);
    try_next();
  }

  void try_next() {
    const auto self = shared_from_this();
    if (next_ == addresses_.size()) return finish(no_answer());
    const IpAddress& address = addresses_[next_];
    const auto left = end_ - steady_clock::now();
    const auto part = left / static_cast<int>(addresses_.size() - next_);
    ++next_;
    auto fd = socket_for(address);
    if (!fd) return finish(std::move(fd).error());
    fd_ = *std::move(fd);
    errno_ = begin_to_connect(fd_.get(), address, address_.port);
    if (errno_ == 0) return connected();
    if (errno_ != EINPROGRESS) return soon([this] { try_next(); });
    timer_ = loop_.after(part, [this] {
      errno_ = ETIMEDOUT;
      give_up_this();
    });
    socket_ready_ = loop_.when_writable(fd_.get(), [this] {
      errno_ = connect_error(fd_.get());
      if (errno_ == 0) return connected();
      give_up_this();
    });
  }

  void give_up_this() {
    socket_ready_.reset();
    fd_.reset();
    soon([this] { try_next(); });
  }

  void connected() {
    send_at_once(fd_.get());
    keep_alive(fd_.get());
    socket_ready_.reset();
    finish(std::move(fd_));
  }

  void finish(Result<UniqueFd> result) {
    const auto self = shared_from_this();
    timer_.reset();
    std::exchange(then_, nullptr)(std::move(result));
  }

  Error no_answer() const {
    return {.code = ErrorCode::kUnavailable,
            .what = "no server answers at " + to_string(address_) + ": " + std::strerror(errno_),
            .advice = "check that the server runs, and that no firewall blocks the connection"};
  }

  EventLoop& loop_;
  HostAndPort address_;
  steady_clock::time_point end_;
  Connected then_;
  std::unique_ptr<NameLookup> lookup_;
  std::vector<IpAddress> addresses_;
  size_t next_ = 0;
  UniqueFd fd_;
  int errno_ = 0;
  // Declared after the descriptors that they watch.
  EventLoop::Interest timer_;
  EventLoop::Interest socket_ready_;
};

}  // namespace

std::shared_ptr<void> connect_async(EventLoop& loop, const std::filesystem::path& socket,
                                    Connected then) {
  auto attempt = std::make_shared<ToUnixSocket>(loop, socket, std::move(then));
  attempt->try_it({});
  return attempt;
}

std::shared_ptr<void> connect_async(EventLoop& loop, const HostAndPort& address,
                                    std::chrono::milliseconds patience, Connected then) {
  auto attempt = std::make_shared<ToHost>(loop, address, patience, std::move(then));
  attempt->begin();
  return attempt;
}

}  // namespace muster::http
