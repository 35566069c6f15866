#include "engine/node/server_calls.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/files.h"

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
};

/// Result of looking up the name of a host.
struct HostAddresses {
  std::vector<SocketAddress> addresses;
  std::string why;  ///< why there are no addresses, or no more of them
};

namespace {

/// A running host answers within milliseconds; a missing one may never answer.
constexpr std::chrono::seconds kConnectPatience{3};
/// Between two calls of the server: doubled after each failure.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5'000};
/// Between Hello and Welcome.
constexpr std::chrono::seconds kWelcomePatience{20};

HostAddresses look_up_name(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return {.addresses = {}, .why = ::gai_strerror(error)};
  HostAddresses found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    if (entry->ai_addrlen > sizeof address.address) continue;
    std::memcpy(&address.address, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    found.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  found.why = "it has no address";
  return found;
}

}  // namespace

struct ServerSearch::Search {
  CallbackAddress server;
  Found found;
  size_t host = 0;
  HostAddresses names;
  size_t address = 0;
  std::string whys;
  UniqueFd socket;
  base::EventLoop::Interest connecting;  // after socket: they must go first
  base::EventLoop::Interest patience;
};

std::shared_ptr<void> ServerSearch::find(const CallbackAddress& server, Found found) {
  auto search = std::make_shared<Search>();
  search->server = server;
  search->found = std::move(found);
  auto& hosts = search->server.hosts;
  const auto last = std::find(hosts.begin(), hosts.end(), answered_last_);
  const auto first = last != hosts.end() && is_distrusted_ ? last + 1 : last;
  std::rotate(hosts.begin(), first, hosts.end());
  look_up(search);
  return search;
}

void ServerSearch::look_up(const std::shared_ptr<Search>& search) {
  if (search->host == search->server.hosts.size()) {
    loop_.post([weak = std::weak_ptr(search)] {
      const auto still = weak.lock();
      if (!still) return;
      const auto found = std::exchange(still->found, nullptr);
      found(Error{.code = ErrorCode::kUnavailable,
                  .what = "the server does not answer at port " +
                          std::to_string(still->server.port) + " of " +
                          (still->whys.empty() ? "any host" : still->whys)});
    });
    return;
  }
  const std::string host = search->server.hosts[search->host];
  const auto names = std::make_shared<HostAddresses>();
  looking_up_.run([names, host, port = search->server.port] { *names = look_up_name(host, port); },
                  [this, names, weak = std::weak_ptr(search)] {
                    const auto still = weak.lock();
                    if (!still) return;
                    still->names = std::move(*names);
                    still->address = 0;
                    connect(still);
                  });
}

void ServerSearch::connect(const std::shared_ptr<Search>& search) {
  if (search->address == search->names.addresses.size()) {
    search->whys += (search->whys.empty() ? "" : ", ") + search->server.hosts[search->host++] +
                    " (" + search->names.why + ")";
    return look_up(search);
  }
  const SocketAddress& address = search->names.addresses[search->address];
  search->socket =
      UniqueFd(::socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!search->socket) return next(search, std::strerror(errno));
  if (::connect(search->socket.get(), reinterpret_cast<const sockaddr*>(&address.address),
                address.length) == 0) {
    return connected(search, 0);
  }
  if (errno != EINPROGRESS) return next(search, std::strerror(errno));
  const std::weak_ptr<Search> weak = search;
  search->connecting = loop_.when_writable(search->socket.get(), [this, weak] {
    const auto still = weak.lock();
    if (!still) return;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(still->socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    connected(still, error);
  });
  search->patience = loop_.after(kConnectPatience, [this, weak] {
    if (const auto still = weak.lock()) connected(still, ETIMEDOUT);
  });
}

void ServerSearch::connected(const std::shared_ptr<Search>& search, int error) {
  search->connecting.reset();
  search->patience.reset();
  if (error != 0) return next(search, std::strerror(error));
  answered_last_ = search->server.hosts[search->host];
  is_distrusted_ = false;
  const auto found = std::exchange(search->found, nullptr);
  found(std::move(search->socket));
}

void ServerSearch::next(const std::shared_ptr<Search>& search, const std::string& why) {
  search->socket.reset();
  search->names.why = why;
  ++search->address;
  connect(search);
}

// --- calls

namespace {

constexpr std::chrono::seconds kGreetingPatience{10};
constexpr size_t kLongestAddress = 64 << 10;

}  // namespace

/// A connection that this node has opened.
class ServerLine : public NodeConnection {
 public:
  /// `socket`: connected to the server. Fills in the address of the hello.
  ServerLine(base::EventLoop& loop, UniqueFd socket, const rsh::Key& key, const GangId& gang,
             Hello hello)
      : socket_(std::make_shared<NodeSocket>(loop, std::move(socket), rsh::End::kNear, key)),
        gang_(gang),
        hello_(std::move(hello)) {
    hello_.address = socket_->own_address();
  }
  ~ServerLine() override { socket_->hang_up(); }

  /// Calls `greeted` once the handshake is done and the hello sent, or else `failed`.
  void greet(std::function<void()> greeted, std::function<void(const std::string& why)> failed) {
    socket_->begin({.on_established =
                        [this, greeted = std::move(greeted)] {
                          socket_->send(NodeNews(hello_));
                          const auto then = greeted;  // it may replace the handlers
                          then();
                        },
                    .on_message = nullptr,
                    .on_end = std::move(failed),
                    .on_drain = nullptr},
                   encode(Caller{gang_}));
  }

  const GangId& gang() const override { return gang_; }
  const Hello& hello() const override { return hello_; }
  void listen(Handlers handlers) override {
    socket_->listen({.on_established = nullptr,
                     .on_message = std::move(handlers.on_message),
                     .on_end = std::move(handlers.on_end),
                     .on_drain = std::move(handlers.on_drain)});
  }
  void send(const NodeMessage& message) override { socket_->send(message); }
  size_t waiting() const override { return socket_->waiting(); }
  void pause(bool paused) override { socket_->pause(paused); }

 private:
  std::shared_ptr<NodeSocket> socket_;
  GangId gang_;
  Hello hello_;
};

struct ServerCalls::Call {
  Hello hello;
  Then then;
  std::shared_ptr<ServerLine> line;
  std::shared_ptr<void> search;
  base::EventLoop::Interest patience;
};

/// The current address from the shared folder, or else the one of the brief.
CallbackAddress ServerCalls::server() const {
  CallbackAddress as_briefed{.hosts = brief_.hosts, .port = brief_.port};
  if (!shares_folder_) return as_briefed;
  const auto text =
      base::read_file(std::filesystem::path(brief_.folder) / kCallbackFile, kLongestAddress);
  const auto now = text ? decode_callback(*text) : Result<CallbackAddress>(text.error());
  return now ? *now : as_briefed;
}

std::shared_ptr<void> ServerCalls::call(Hello hello, Then then) {
  auto call = std::make_shared<Call>();
  call->hello = std::move(hello);
  call->then = std::move(then);
  const std::weak_ptr<Call> weak = call;
  call->search = search_.find(server(), [this, weak](Result<base::UniqueFd> socket) {
    const auto still = weak.lock();
    if (!still) return;
    if (!socket) return failed(still, std::move(socket).error());
    found(still, *std::move(socket));
  });
  return call;
}

void ServerCalls::found(const std::shared_ptr<Call>& call, base::UniqueFd socket) {
  call->line = std::make_shared<ServerLine>(loop_, std::move(socket), brief_.key,
                                            brief_.caller.gang, std::move(call->hello));
  const std::weak_ptr<Call> weak = call;
  call->patience = loop_.after(kGreetingPatience, [this, weak] {
    const auto still = weak.lock();
    if (still) failed(still, {.code = ErrorCode::kTimeout, .what = "the server does not answer"});
  });
  call->line->greet(
      [weak] {
        const auto still = weak.lock();
        if (!still) return;
        still->patience.reset();
        const auto then = std::exchange(still->then, nullptr);
        then(std::shared_ptr<NodeConnection>(std::exchange(still->line, nullptr)));
      },
      [this, weak](const std::string& why) {
        const auto still = weak.lock();
        if (still) {
          failed(still, {.code = ErrorCode::kRefused,
                         .what = "the server rejects the connection: it " + why});
        }
      });
}

void ServerCalls::failed(const std::shared_ptr<Call>& call, Error error) {
  call->patience.reset();
  if (call->line) search_.distrust();
  loop_.post([line = std::exchange(call->line, nullptr)] {});  // a handler of it may be running
  const auto then = std::exchange(call->then, nullptr);
  if (then) then(std::move(error));
}

// --- the connection for orders

OrderLine::OrderLine(base::EventLoop& loop, ServerWay& calls, Handlers handlers)
    : loop_(loop), calls_(calls), handlers_(std::move(handlers)), pause_(kFirstPause) {}

void OrderLine::call() {
  timer_.reset();
  calling_ = calls_.call(handlers_.hello(), [this](Result<std::shared_ptr<NodeConnection>> line) {
    called(std::move(line));
  });
}

void OrderLine::call_anew() {
  if (line_) lost("has connected again");
  if (!timer_) return;  // a call is under way, or the node is leaving
  pause_ = kFirstPause;
  call();
}

void OrderLine::called(Result<std::shared_ptr<NodeConnection>> line) {
  if (!line) {
    last_failure_ = line.error().what;
    return call_later();
  }
  line_ = *std::move(line);
  line_->listen({.on_message = [this](const NodeMessage& message) { take(message); },
                 .on_end = [this](const std::string& why) { lost(why); },
                 .on_drain = [this] { handlers_.on_drain(); }});
  patience_ = loop_.after(kWelcomePatience, [this] { lost("does not answer"); });
}

void OrderLine::take(const NodeMessage& message) {
  const auto* const order = std::get_if<NodeOrder>(&message);
  if (order == nullptr) return;  // news go to the other end
  if (std::holds_alternative<Welcome>(*order)) {
    patience_.reset();
    pause_ = kFirstPause;
    is_accepted_ = was_ever_accepted_ = true;
    last_contact_ = Steady::now();
  }
  handlers_.on_order(*order);
}

void OrderLine::lost(const std::string& why) {
  patience_.reset();
  if (is_accepted_) last_contact_ = Steady::now();
  is_accepted_ = false;
  last_failure_ = "the server " + why;
  loop_.post([line = std::exchange(line_, nullptr)] {});  // a handler of it may be running
  handlers_.on_lost();
  call_later();
}

void OrderLine::call_later() {
  if (!handlers_.calls_again()) return;
  timer_ = loop_.after(pause_, [this] { call(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

bool OrderLine::send(const NodeNews& news) {
  if (!is_accepted_ || !line_) return true;
  line_->send(news);
  return line_->waiting() <= NodeConnection::kHigh;
}

std::chrono::steady_clock::duration OrderLine::silence() const {
  return is_accepted_ ? Steady::duration::zero() : Steady::now() - last_contact_;
}

void OrderLine::close() {
  line_.reset();
  timer_.reset();
  patience_.reset();
  calling_.reset();
}

}  // namespace muster::engine::node
