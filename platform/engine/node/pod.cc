#include "engine/node/pod.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/folder/image_account.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

// --- facts

namespace {

using PodVariables = std::map<std::string, std::string>;

constexpr size_t kMostFile = 4 << 20;
/// A Hello is a small message.
constexpr size_t kMostEnvironment = 128 << 10;

std::string value_of(const PodVariables& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

template <class Number>
Result<Number> pod_number(const PodVariables& variables, const char* name, Number otherwise) {
  const std::string text = value_of(variables, name);
  if (text.empty()) return otherwise;
  if (const auto number = base::number_of<Number>(text)) return *number;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the variable " + std::string(name) + " is '" + text + "', not a number",
               .advice = "Muster's server sets it in the pods that it creates"};
}

/// Variables of the pod and of the cluster, which are not the image's.
bool is_of_pod(std::string_view name) {
  return name.starts_with("MUSTER_POD_") || name.starts_with("KUBERNETES_") || name == "HOSTNAME";
}

std::map<std::string, std::string> image_environment(const PodVariables& variables) {
  std::map<std::string, std::string> environment;
  size_t size = 0;
  for (const auto& [name, value] : variables) {
    size += name.size() + value.size();
    if (!is_of_pod(name) && size <= kMostEnvironment) environment[name] = value;
  }
  return environment;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string first_program(const fs::path& root, std::initializer_list<const char*> paths) {
  for (const char* const path : paths) {
    if (is_program(root / fs::path(path).relative_path())) return path;
  }
  return "";
}

std::string text_of_file(const fs::path& path) {
  auto text = base::read_file(path, kMostFile);
  return text ? *std::move(text) : "";
}

Result<launch::ImageFacts> read_image(const PodVariables& variables, const fs::path& root) {
  const std::string user = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
  MUSTER_TRY(launch::Account account, find_account(user, text_of_file(root / "etc/passwd"),
                                                   text_of_file(root / "etc/group")));
  std::error_code error;
  return launch::ImageFacts{
      .environment = image_environment(variables),
      .folder = fs::current_path(error).string(),
      .account = std::move(account),
      .sshd = first_program(root, {"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"}),
      .has_ssh = !first_program(root, {"/usr/bin/ssh", "/usr/local/bin/ssh"}).empty(),
      .has_shell = !first_program(root, {"/bin/sh"}).empty()};
}

/// A list of uuids or numbers; "all", "none" and "void" name no GPU of the pod's own.
std::vector<std::string> gpus_in(const std::string& visible) {
  if (visible.empty() || visible == "all" || visible == "none" || visible == "void") return {};
  std::vector<std::string> gpus = base::split(visible, ',');
  // Numbers are those of the machine; the container's own count from 0.
  const bool are_numbers = std::all_of(gpus.begin(), gpus.end(), [](const std::string& gpu) {
    return base::number_of<int>(gpu).has_value();
  });
  for (size_t i = 0; are_numbers && i < gpus.size(); ++i) gpus[i] = std::to_string(i);
  return gpus;
}

}  // namespace

Result<PodFacts> read_pod(const PodVariables& variables, const fs::path& root) {
  PodFacts pod;
  pod.facts.node = value_of(variables, kPodNode);
  if (pod.facts.node.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the variable " + std::string(kPodNode) + " is not set",
                 .advice = "muster-node --pod is started in the pods that Muster's server creates"};
  }
  pod.facts.instance = value_of(variables, kPodUid);
  pod.address = value_of(variables, kPodAddress);
  MUSTER_TRY(pod.facts.index, pod_number<int>(variables, kPodIndex, 0));
  MUSTER_TRY(pod.port, pod_number<uint16_t>(variables, kPodPort, 0));
  MUSTER_TRY(const int grace, pod_number<int>(variables, kPodGrace, 30));
  pod.grace = std::chrono::seconds(grace);
  pod.facts.gpus = gpus_in(value_of(variables, "NVIDIA_VISIBLE_DEVICES"));
  for (size_t i = 0; i < pod.facts.gpus.size(); ++i) {
    pod.facts.gpu_indices.push_back(static_cast<int>(i));
  }
  MUSTER_TRY(pod.image, read_image(variables, root));
  return pod;
}

// --- the brief

std::optional<std::string> take_brief_variable() {
  char* const value = std::getenv(kPodBriefText);
  if (value == nullptr) return std::nullopt;
  std::string brief = value;
  ::explicit_bzero(value, brief.size());
  ::unsetenv(kPodBriefText);
  return brief;
}

// --- installing

namespace {

constexpr std::array kPrograms{"muster-node", "muster-shim", "muster-helper", "muster-rsh"};
/// Needs the C library, which only some images have; tasks without it report no use of GPUs.
constexpr const char* kGpuSampler = "muster-gpu-sampler";

Result<void> copy_to(const fs::path& from, const fs::path& to, mode_t mode) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) {
    return base::system_error("cannot copy '" + from.string() + "' to '" + to.string() + "'",
                              error.value());
  }
  if (::chmod(to.c_str(), mode) == 0) return {};
  return base::system_error("cannot set the mode of '" + to.string() + "'", errno);
}

}  // namespace

Result<void> install(const fs::path& programs, const fs::path& folder, const fs::path& brief) {
  const fs::path bin = folder / "bin";
  std::error_code error;
  fs::create_directories(bin, error);
  if (error || ::chmod(bin.c_str(), 0755) != 0) {
    return base::system_error("cannot make '" + bin.string() + "'", error ? error.value() : errno);
  }
  for (const char* const name : kPrograms) {
    MUSTER_CHECK(copy_to(programs / name, bin / name, 0755));
  }
  if (fs::exists(programs / kGpuSampler, error)) {
    MUSTER_CHECK(copy_to(programs / kGpuSampler, bin / kGpuSampler, 0755));
  }
  if (brief.empty()) return {};
  return copy_to(brief, folder / "brief", 0444);
}

// --- process 1

int hold_as_process_one(const std::function<int()>& body) {
  sigset_t held;
  sigset_t before;
  sigemptyset(&held);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&held, signal);
  }
  ::sigprocmask(SIG_BLOCK, &held, &before);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // where it is not process 1: pods that share their processes
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(body());
  }
  if (child < 0) return 1;
  while (true) {
    siginfo_t info{};
    if (::sigwaitinfo(&held, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      ::kill(child, info.si_signo);
      continue;
    }
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != child) continue;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

// --- the bridge

namespace {

UniqueFd connected_to_port(uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four) == 0) {
    return socket;
  }
  socket.reset(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  six.sin6_addr = in6addr_loopback;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six) == 0) {
    return socket;
  }
  return {};
}

/// Copies what can be read now; false: the source has ended, or its reader has gone.
bool copy_some(int from, int to) {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = ::read(from, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  return base::write_all(to, {buffer.data(), static_cast<size_t>(count)}).ok();
}

}  // namespace

int run_bridge(uint16_t port) {
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd socket = connected_to_port(port);
  if (!socket) {
    dprintf(STDERR_FILENO, "muster-node: cannot connect to port %d of this pod: %s\n", port,
            std::strerror(errno));
    return 1;
  }
  bool has_input = true;
  while (true) {
    std::array<pollfd, 2> watched{
        {{has_input ? STDIN_FILENO : -1, POLLIN, 0}, {socket.get(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0 && !copy_some(STDIN_FILENO, socket.get())) {
      has_input = false;
      ::shutdown(socket.get(), SHUT_WR);
    }
    if (watched[1].revents != 0 && !copy_some(socket.get(), STDOUT_FILENO)) return 0;
  }
}

}  // namespace muster::engine::node
