#include "engine/container/container_host.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "engine/engine.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using std::chrono::milliseconds;

namespace {

/// In hexadecimal digits.
std::string short_hash(std::string_view text) {
  const uint64_t hash = base::fnv_1a(text);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(hash >> shift) & 15U];
  return digits;
}

/// Creates a private folder, or takes over the one that a killed server has left. False: there is
/// another thing of that name.
bool make_or_take_over(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  struct stat found{};
  const bool is_ours = errno == EEXIST && ::lstat(path.c_str(), &found) == 0 &&
                       S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
                       (found.st_mode & 07777) == 0700;
  return is_ours;
}

}  // namespace

/// A private folder with a short path, because the path of a socket has at most 107 characters. The
/// destructor removes it. After a SIGKILL the next folder of the same owner and host takes its
/// place.
class SocketFolder {
 public:
  /// `owner`: empty for a folder that is shared with no later process.
  SocketFolder(const std::string& owner, const std::string& host) {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    for (const char* parent : {runtime, "/tmp"}) {
      if (parent == nullptr) continue;
      const std::string prefix = std::string(parent) + "/muster-ssh-";
      if (std::string own = prefix + short_hash(owner + "/" + host);
          !owner.empty() && make_or_take_over(own)) {
        path_ = std::move(own);
        ::unlink(socket().c_str());
        return;
      }
      std::string name = prefix + "XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      return;
    }
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  /// If the folder could not be created, the tunnel fails to bind its socket and reports that.
  fs::path socket() const { return path_ / "engine.sock"; }

 private:
  fs::path path_;
};

namespace {

std::string address_of(const Endpoint& endpoint) {
  if (const auto* tls = std::get_if<TlsEndpointOfHost>(&endpoint)) return tls->host;
  if (const auto* ssh = std::get_if<SshEndpoint>(&endpoint)) return ssh->host;
  return "";
}

std::string engine_of(const DockerInfo& info) {
  return (info.is_podman ? "podman " : "docker ") + info.version;
}

Node node_from_info(const ContainerHostOptions& options, const DockerInfo& info) {
  Node node{.name = options.name,
            .pool = options.pool,
            .task_slots = options.task_slots,
            .gpu_model = {},
            .gpu_names = {},
            .cpu_milli = int64_t{info.cpus} * 1000,
            .memory_bytes = info.memory_bytes,
            .address = options.address.empty() ? address_of(options.endpoint) : options.address,
            .topology = options.topology,
            .labels = {{"arch", info.architecture},
                       {"endpoint", to_string(options.endpoint)},
                       {"engine", engine_of(info)},
                       {"os", info.os}}};
  if (options.declared_gpus) {
    node.gpus = options.declared_gpus->count;
    node.gpu_model = options.declared_gpus->model;
    node.gpu_memory_bytes = options.declared_gpus->memory_bytes;
  }
  return node;
}

std::string usual_advice(const Endpoint& endpoint) {
  if (std::holds_alternative<UnixEndpoint>(endpoint)) {
    return "start it: systemctl --user start podman.socket, or podman system service --time=0, or "
           "Docker (your account must be in the group of its socket)";
  }
  if (std::holds_alternative<TlsEndpointOfHost>(endpoint)) {
    return "check that its engine listens there with TLS, and that no firewall blocks this machine";
  }
  return "check that its engine runs there: systemctl --user start podman.socket, or Docker";
}

/// The error on one line.
std::string one_line(const Error& error) {
  return error.what + (error.faults.empty() ? "" : ": " + error.faults.back().what);
}

bool has_same_text(const std::optional<Error>& a, const std::optional<Error>& b) {
  return a.has_value() == b.has_value() && (!a || a->to_string() == b->to_string());
}

}  // namespace

struct ContainerHost::Impl {
  base::EventLoop& loop;
  const ContainerHostOptions options;
  const Patience patience;
  const AskingPace pace;
  const std::function<void()> changed;
  const std::string owner;
  const base::Time opened = base::SystemClock().now();

  std::unique_ptr<SocketFolder> folder;  ///< of the tunnel
  std::unique_ptr<DockerClient> client;
  std::unique_ptr<SshTunnel> tunnel;

  std::optional<Node> node;
  std::optional<DockerInfo> info;
  std::optional<Error> fault;
  std::vector<std::function<void()>> waiting;  ///< for the first answer
  bool is_reached = true;                      ///< false: the tunnel is not open
  bool is_asking = false;
  milliseconds pause = pace.first_pause;
  base::EventLoop::Interest timer;    ///< until it is asked again
  base::EventLoop::Interest absence;  ///< until its node is gone

  void connect() {
    const auto* ssh = std::get_if<SshEndpoint>(&options.endpoint);
    if (ssh == nullptr) {
      client = std::make_unique<DockerClient>(loop, options.endpoint, patience);
      return ask();
    }
    folder = std::make_unique<SocketFolder>(owner, options.name);
    client = std::make_unique<DockerClient>(loop, options.endpoint, UnixEndpoint{folder->socket()},
                                            patience);
    tunnel = std::make_unique<SshTunnel>(loop, *ssh, folder->socket(),
                                         [this](const Result<void>& state) {
                                           is_reached = state.ok();
                                           state ? ask() : failed(state.error());
                                         });
  }

  void ask() {
    if (is_asking) return;
    is_asking = true;
    // The request stays pending: a late answer is used.
    timer = loop.after(pace.silence, [this] { failed(silence_error()); });
    client->info([this](Result<DockerInfo> answer) {
      is_asking = false;
      if (!is_reached) return;  // the error of ssh explains more
      if (!answer) return failed(std::move(answer).error());
      if (!answer->os.empty() && answer->os != "linux") return failed(wrong_system(*answer));
      answered(*std::move(answer));
    });
  }

  void answered(DockerInfo answer) {
    absence.reset();
    pause = pace.first_pause;
    timer = loop.after(pace.interval, [this] { ask(); });
    info = std::move(answer);
    become(node_from_info(options, *info), std::nullopt);
  }

  void failed(Error error) {
    // The tunnel retries, and polls the host when it is open.
    timer.reset();
    if (is_reached && !is_asking) timer = loop.after(pause, [this] { ask(); });
    pause = std::min(2 * pause, pace.longest_pause);
    if (node && !absence) {
      absence = loop.after(patience.absence, [this] { become(std::nullopt, fault); });
    }
    std::optional<Node> silent = node;
    if (silent) call_silent(*silent, base::SystemClock().now());
    become(std::move(silent), worded(std::move(error)));
  }

  /// Stores the new state, and reports it if it has changed.
  void become(std::optional<Node> now, std::optional<Error> why_not) {
    const bool is_new = now != node || !has_same_text(why_not, fault);
    if (why_not && !has_same_text(why_not, fault)) {
      base::log_warning(one_line(*why_not) + "; " + why_not->advice);
    }
    if (now && !why_not && (fault || !node)) {
      base::log_info("host '" + options.name + "' answers: " + now->labels.at("engine"));
    }
    node = std::move(now);
    fault = std::move(why_not);
    for (const auto& met : std::exchange(waiting, {})) met();
    if (is_new) changed();
  }

  /// The node of a host that has never answered.
  Node unknown_node() const {
    Node unknown{.name = options.name,
                 .pool = options.pool,
                 .gpu_model = {},
                 .gpu_names = {},
                 .address = {},
                 .topology = options.topology,
                 .labels = {{"endpoint", to_string(options.endpoint)},
                            {kFault, "host '" + options.name + "' has not answered yet"}}};
    call_silent(unknown, opened);
    return unknown;
  }

  Error worded(Error error) const {
    error.what = "host '" + options.name + "' cannot be used: " + error.what;
    if (error.advice.empty()) error.advice = usual_advice(options.endpoint);
    return error;
  }

  static Error silence_error() {
    return {.code = ErrorCode::kUnavailable,
            .what = "it has stopped answering",
            .advice = {},
            .faults = {}};
  }

  static Error wrong_system(const DockerInfo& info) {
    return {.code = ErrorCode::kInvalid,
            .what = "its containers run " + info.os + ", and tasks need Linux",
            .advice = "switch its engine to Linux containers",
            .faults = {}};
  }
};

ContainerHost::ContainerHost(base::EventLoop& loop, ContainerHostOptions options,
                             const Patience& patience, std::function<void()> changed,
                             AskingPace pace, std::string owner)
    : impl_(new Impl{.loop = loop,
                     .options = std::move(options),
                     .patience = patience,
                     .pace = pace,
                     .changed = std::move(changed),
                     .owner = std::move(owner)}) {
  impl_->connect();
}

ContainerHost::~ContainerHost() = default;

const std::string& ContainerHost::name() const {
  return impl_->options.name;
}

DockerClient& ContainerHost::client() {
  return *impl_->client;
}

std::optional<Node> ContainerHost::node() const {
  std::optional<Node> node = impl_->node;
  if (!node && !impl_->info) node = impl_->unknown_node();
  if (node && impl_->fault) node->labels[kFault] = one_line(*impl_->fault);
  return node;
}

bool ContainerHost::has_answered() const {
  return impl_->node.has_value();
}

std::optional<DockerInfo> ContainerHost::info() const {
  return impl_->info;
}

std::optional<Error> ContainerHost::fault() const {
  return impl_->fault;
}

void ContainerHost::ask() {
  if (impl_->is_reached) impl_->ask();
}

void ContainerHost::when_met(std::function<void()> met) {
  if (impl_->node || impl_->fault) return met();
  impl_->waiting.push_back(std::move(met));
}

namespace {

Error nobody_answers(const std::vector<std::unique_ptr<ContainerHost>>& hosts) {
  if (hosts.size() == 1 && hosts.front()->fault()) return *hosts.front()->fault();
  Error error{.code = ErrorCode::kUnavailable,
              .what = "no container host answers",
              .advice =
                  "container_hosts of the configuration, or --host, name them: "
                  "docs/containers.md",
              .faults = {}};
  bool can_wait = false;
  for (const auto& host : hosts) {
    const auto fault = host->fault();
    error.faults.push_back(
        {.field = host->name(), .what = fault ? fault->what : "did not answer in time"});
    can_wait = can_wait || !fault || fault->code != ErrorCode::kInvalid;
  }
  if (!can_wait) error.code = ErrorCode::kInvalid;
  return error;
}

}  // namespace

Result<void> meet(base::EventLoop& loop, const std::vector<std::unique_ptr<ContainerHost>>& hosts,
                  milliseconds bound) {
  if (hosts.empty()) return nobody_answers(hosts);
  // Shared, because a host may answer after this function has returned. The loop is stopped only
  // once: a second stop would end its next run.
  struct Meeting {
    size_t left = 0;
    bool is_over = false;
  };
  const auto meeting = std::make_shared<Meeting>(Meeting{.left = hosts.size()});
  const auto end = [meeting, &loop] {
    if (!std::exchange(meeting->is_over, true)) loop.stop();
  };
  for (const auto& host : hosts) {
    host->when_met([meeting, end] {
      if (--meeting->left == 0) end();
    });
  }
  const auto timer = loop.after(bound, end);
  loop.run();
  const bool one_answers = std::any_of(hosts.begin(), hosts.end(),
                                       [](const auto& host) { return host->has_answered(); });
  if (!one_answers) return nobody_answers(hosts);
  return {};
}

}  // namespace muster::engine
