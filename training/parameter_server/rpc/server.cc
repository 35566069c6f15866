// The server: its start and end.
#include "muster/parameter_server/server.h"

#include <grpc/grpc.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "parameter_server/rpc/bulk_server.h"
#include "parameter_server/rpc/security.h"
#include "parameter_server/rpc/service.h"
#include "parameter_server/tls_stream.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

Status check_server_options(const ServerOptions& options) {
  if (options.workers < 0) {
    return Error{ErrorCode::kBadArgument,
                 "invalid number of workers " + std::to_string(options.workers)};
  }
  return check_silence(options.silence);
}

// Is readable after a signal. It is never closed: a handler may still write to it.
int stop_event() {
  static const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return event;
}

void note_stop(int /*signal*/) {
  const int before = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_event(), &one, sizeof one);
  errno = before;
}

// SIGTERM and SIGINT, which one thread waits for. Handlers and not a signal mask: threads that exist
// already would not inherit a mask.
class StopSignals {
 public:
  StopSignals() {
    std::uint64_t of_an_earlier_wait = 0;
    [[maybe_unused]] const auto dropped =
        ::read(stop_event(), &of_an_earlier_wait, sizeof of_an_earlier_wait);
    struct sigaction noting = {};
    noting.sa_handler = note_stop;
    noting.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &noting, nullptr);
    }
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }

  static void wait() {
    pollfd event = {.fd = stop_event(), .events = POLLIN, .revents = 0};
    while (::poll(&event, 1, -1) < 0 && errno == EINTR) {
    }
  }

  /// Ends a wait, as a signal would.
  static void wake() { note_stop(0); }

 private:
  static constexpr std::array<int, 2> kSignals = {SIGTERM, SIGINT};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

bool is_stopped_by_its_job() {
  const char* const task = std::getenv("MUSTER_TASK");
  return task != nullptr && std::string_view(task).starts_with("ps-");
}

// "0.0.0.0:0" with the port that the system chose.
std::string with_port(const std::string& address, int port) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

}  // namespace

class Server::Implementation {
 public:
  explicit Implementation(const ServerOptions& options) : service_(options) {}
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;
  ~Implementation() { stop(std::chrono::seconds(2)); }

  Status listen(const ServerOptions& options,
                const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    for (const auto& [name, value] : liveness(options.silence)) {
      builder.AddChannelArgument(name, value);
    }
    // The same limit applies to a client that connects and does not start TLS.
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options.silence.count()));
    // Otherwise two servers could share a port without an error, and each would get some of the
    // workers.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int port = 0;
    builder.AddListeningPort(options.address, credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_ = nullptr;
      return Error{ErrorCode::kSystem, "the parameter server cannot listen on " + options.address,
                   "the address must belong to this host, and its port must be free"};
    }
    service_.set_address(with_port(options.address, port));
    return {};
  }

  // Workers use gRPC alone if this fails.
  void listen_for_bulk(const ServerOptions& options) {
    auto bulk = BulkServer::start(split_address(options.address).host, options.key, options.silence,
                                  service_);
    if (!bulk) return;
    bulk_ = *std::move(bulk);
    service_.set_bulk(bulk_->port(), [this](std::uint64_t session) { bulk_->close(session); });
  }

  const std::string& address() const { return service_.address(); }
  ServerStatus status() const { return service_.status(); }

  Ending wait() {
    const bool all_workers_left = service_.roster().wait_for_end();
    const Roster::Departures departures = service_.roster().departures();
    return {.stopped = !all_workers_left, .left = departures.left, .lost = departures.lost};
  }

  void wait_for_stop() { service_.roster().wait_for_stop(); }

  void stop(std::chrono::milliseconds grace) {
    const auto end = BulkServer::Clock::now() + grace;
    if (bulk_) bulk_->refuse();
    service_.roster().stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + grace);
    if (bulk_) bulk_->stop(end);
  }

 private:
  Service service_;  // outlives the servers, which call it
  std::unique_ptr<BulkServer> bulk_;
  std::unique_ptr<grpc::Server> server_;
};

Server::Server(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

Result<Server> Server::start(const ServerOptions& options) {
  if (const Status right = check_server_options(options); !right) return right.error();
  const auto credentials = server_credentials(options.key);
  if (!credentials) return credentials.error();
  auto implementation = std::make_unique<Implementation>(options);
  implementation->listen_for_bulk(options);
  if (const Status listens = implementation->listen(options, *credentials); !listens) {
    return listens.error();
  }
  return Server(std::move(implementation));
}

const std::string& Server::address() const {
  return implementation_->address();
}
ServerStatus Server::status() const {
  return implementation_->status();
}
Ending Server::wait() {
  return implementation_->wait();
}
Ending Server::wait_as_task(const std::function<void(const Ending&)>& when_gone) {
  const StopSignals signals;
  std::thread stopper([this] {
    StopSignals::wait();
    stop();
  });
  const Ending gone = wait();
  if (when_gone) when_gone(gone);
  // The stopper, or a thread that calls stop(), ends this wait.
  if (is_stopped_by_its_job()) implementation_->wait_for_stop();
  StopSignals::wake();
  stopper.join();
  return wait();  // a worker may have joined and left meanwhile
}
void Server::stop(std::chrono::milliseconds grace) {
  implementation_->stop(grace);
}

}  // namespace muster::parameter_server
