// muster-shim --pasta connects the network of a gang to the Internet if the server has an ordinary
// account (network.h).
//
// The process enters the network, where it has all rights, and lets nft refuse what jobs must not
// reach. Then it starts pasta, which makes a device in the network and passes its packets on over
// sockets of the account. It ends pasta when the pipe that all shims of the gang hold has no writer
// left, so pasta ends with the gang, also if the server was killed.
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/shim/channels.h"
#include "engine/shim/modes.h"
#include "engine/shim/network.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMostWait{10};
constexpr int kLookForDevice = 10;  ///< milliseconds between two looks
constexpr const char* kDevice = "eth0";
constexpr std::string_view kConnected = "connected";

Error not_connected(const std::string& why) {
  return {.code = ErrorCode::kUnavailable,
          .what = "cannot connect the job to the Internet: " + why,
          .advice = "tasks.internet: false if no job needs the Internet"};
}

/// Programs that this process starts from now on have its rights over the network, although its
/// user is not root there.
Result<void> pass_on_rights() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> rights{};
  if (::syscall(SYS_capget, &header, rights.data()) != 0) {
    return base::system_error("cannot read the rights of this process", errno);
  }
  constexpr uint32_t kNetAdmin = uint32_t{1} << CAP_NET_ADMIN;
  rights[0].inheritable |= kNetAdmin & rights[0].permitted;
  if (::syscall(SYS_capset, &header, rights.data()) != 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0) != 0) {
    return base::system_error("cannot pass the right over the network on", errno);
  }
  return {};
}

std::string first_words_in(const UniqueFd& file) {
  std::array<char, 512> buffer{};
  const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  const std::string text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text.substr(0, text.find('\n'));
}

/// In a child, for the rest of this process has to stay outside of the network.
Result<void> set_rules(const std::string& nft) {
  MUSTER_TRY(const UniqueFd errors, in_memory_file(""));
  const pid_t child = ::fork();
  if (child < 0) return base::system_error("cannot start a process", errno);
  if (child == 0) {
    if (!enter_network(kPastaNetwork, kPastaUser) || !pass_on_rights()) ::_exit(3);
    ::dup2(kPastaRules, STDIN_FILENO);
    ::dup2(errors.get(), STDOUT_FILENO);
    ::dup2(errors.get(), STDERR_FILENO);
    ::execl(nft.c_str(), "nft", "-f", "-", nullptr);
    ::_exit(4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return not_connected("nft: " + first_words_in(errors));
}

/// pasta has made its device, and set it up.
bool has_device() {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool entered = static_cast<bool>(enter_network(kPastaNetwork, kPastaUser));
    const auto routes = base::read_file("/proc/self/net/route", 1 << 16);
    ::_exit(entered && routes && routes->find(kDevice) != std::string::npos ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

Result<base::Child> start_pasta(const std::string& pasta, const UniqueFd& errors) {
  return base::spawn({.argv = {pasta,         "--foreground",
                               "--quiet",     "--config-net",
                               "--no-map-gw", "--tcp-ports",
                               "none",        "--udp-ports",
                               "none",        "--tcp-ns",
                               "none",        "--udp-ns",
                               "none",        "--ns-ifname",
                               kDevice,       "--no-netns-quit",
                               "--userns",    "/proc/self/fd/" + std::to_string(kPastaUser),
                               "--netns",     "/proc/self/fd/" + std::to_string(kPastaNetwork)},
                      .environment = {"PATH=/usr/bin:/bin"},
                      .descriptors = {{kPastaNetwork, kPastaNetwork},
                                      {kPastaUser, kPastaUser},
                                      {errors.get(), STDOUT_FILENO},
                                      {errors.get(), STDERR_FILENO}},
                      .folder = "/"});
}

bool ends_within(const UniqueFd& pidfd, int milliseconds) {
  pollfd watched{pidfd.get(), POLLIN, 0};
  return ::poll(&watched, 1, milliseconds) > 0;
}

Result<base::Child> connect_network(const std::string& pasta, const std::string& nft) {
  MUSTER_CHECK(set_rules(nft));
  MUSTER_TRY(const UniqueFd errors, in_memory_file(""));
  MUSTER_TRY(base::Child child, start_pasta(pasta, errors));
  for (const auto end = Clock::now() + kMostWait; Clock::now() < end;) {
    if (has_device()) return child;
    if (ends_within(child.pidfd, kLookForDevice)) break;
  }
  [[maybe_unused]] const auto ended = base::send_signal(child.pidfd, SIGKILL);
  [[maybe_unused]] const auto status = base::wait_for(child);
  const std::string words = first_words_in(errors);
  return not_connected("pasta: " + (words.empty() ? "made no device in time" : words));
}

void report(std::string_view words) {
  [[maybe_unused]] const auto written = base::write_all(STDOUT_FILENO, words);
  ::close(STDOUT_FILENO);
}

/// Until the last shim of the gang has ended, or pasta has.
void await_last_shim(const base::Child& pasta) {
  std::array<pollfd, 2> watched{{{kPastaUsers, 0, 0}, {pasta.pidfd.get(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) continue;
}

}  // namespace

int run_pasta(char** arguments, int count) {
  if (count != 2) return 2;
  for (const int fd : {kPastaNetwork, kPastaUser, kPastaUsers, kPastaRules}) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  // The process continues without a parent, which would have to wait for it.
  if (::fork() != 0) ::_exit(0);
  const auto pasta = connect_network(arguments[0], arguments[1]);
  if (!pasta) {
    report(pasta.error().what);
    return 1;
  }
  report(kConnected);
  await_last_shim(*pasta);
  [[maybe_unused]] const auto sent = base::send_signal(pasta->pidfd, SIGKILL);
  [[maybe_unused]] const auto status = base::wait_for(*pasta);
  return 0;
}

Result<void> connect_by_pasta(const std::string& shim, const PastaPlan& plan,
                              NetworkNamespace& network) {
  std::array<int, 2> users{-1, -1};
  if (::pipe2(users.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  const UniqueFd watched(users[0]);
  UniqueFd held(users[1]);
  MUSTER_TRY(const UniqueFd rules, in_memory_file(plan.rules));
  MUSTER_TRY(Pair words, make_output_pipe());
  MUSTER_TRY(const base::Child holder,
             base::spawn({.argv = {shim, "--pasta", plan.pasta, plan.nft},
                          .environment = {},
                          .descriptors = {{words.there.get(), STDOUT_FILENO},
                                          {network.network.get(), kPastaNetwork},
                                          {network.user.get(), kPastaUser},
                                          {watched.get(), kPastaUsers},
                                          {rules.get(), kPastaRules}},
                          .new_session = true,
                          .folder = "/"}));
  words.there.reset();
  [[maybe_unused]] const auto forked = base::wait_for(holder);
  std::string answer;
  pollfd ready{words.here.get(), POLLIN, 0};
  constexpr int kMostWaitMilliseconds = 15'000;
  while (::poll(&ready, 1, kMostWaitMilliseconds) > 0) {
    std::array<char, 512> buffer{};
    const ssize_t count = ::read(words.here.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    answer.append(buffer.data(), static_cast<size_t>(count));
  }
  if (answer == kConnected) {
    network.users = std::move(held);
    return {};
  }
  held.reset();
  return not_connected(answer.empty() ? "no answer in time" : answer);
}

}  // namespace muster::engine
