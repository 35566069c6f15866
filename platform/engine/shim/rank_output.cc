#include "engine/shim/rank_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "engine/shim/exec.h"
#include "engine/shim/folder_socket.h"
#include "engine/shim/pseudo_terminal.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kLongestMessage = 8192;
constexpr size_t kMostDescriptors = 2;
constexpr int kCannotExecute = 126;
constexpr int kNoSuchProgram = 127;
constexpr const char* kSocket = "output";

/// One that changes no byte on its way.
Result<PseudoTerminal> open_raw_terminal() {
  MUSTER_TRY(PseudoTerminal terminal, open_terminal());
  termios settings{};
  if (::tcgetattr(terminal.slave.get(), &settings) != 0) {
    return base::system_error("cannot make a terminal", errno);
  }
  ::cfmakeraw(&settings);
  ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
  return terminal;
}

/// Waits until process 1 of the task has passed the output on. A task may be killed as soon as its
/// launcher has ended, and what then still waits in a socket of process 1 is lost.
bool is_taken(int socket) {
  pollfd watched{socket, POLLIN, 0};
  while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
  }
  char answer = 0;
  return ::recv(socket, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer;
}

void divert(int rank, const std::string& generated_folder) {
  const auto socket = connect_in(generated_folder, kSocket);
  auto terminal = open_raw_terminal();
  std::array<int, 2> pipe{-1, -1};
  if (!socket || !terminal || ::pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  const UniqueFd error_end(pipe[1]);
  const RankOutput output{
      .rank = rank, .terminal = std::move(terminal->master), .error = UniqueFd(pipe[0])};
  if (!send_rank_output(socket->get(), output) || !is_taken(socket->get())) return;
  ::dup2(terminal->slave.get(), STDOUT_FILENO);
  ::dup2(error_end.get(), STDERR_FILENO);
}

}  // namespace

Result<UniqueFd> listen_for_ranks(const std::string& generated_folder) {
  return listen_in(generated_folder, kSocket);
}

bool send_rank_output(int socket, const RankOutput& output) {
  std::string text = std::to_string(output.rank);
  const std::array<int, kMostDescriptors> descriptors{output.terminal.get(), output.error.get()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> space{};
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  msghdr message{.msg_iov = &part,
                 .msg_iovlen = 1,
                 .msg_control = space.data(),
                 .msg_controllen = space.size()};
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

void answer_rank(int socket) {
  static constexpr char kTaken = 't';
  [[maybe_unused]] const ssize_t sent = ::send(socket, &kTaken, sizeof kTaken, MSG_NOSIGNAL);
}

Result<Message> receive_message(int socket) {
  Message received;
  received.text.resize(kLongestMessage);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> space{};
  iovec part{.iov_base = received.text.data(), .iov_len = received.text.size()};
  msghdr message{.msg_iov = &part,
                 .msg_iovlen = 1,
                 .msg_control = space.data(),
                 .msg_controllen = space.size()};
  const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Error{.code = ErrorCode::kUnavailable, .what = "nothing is there to read"};
  }
  received.text.resize(static_cast<size_t>(count > 0 ? count : 0));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); count > 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < descriptors; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      received.descriptors.emplace_back(fd);
    }
  }
  return received;
}

std::optional<RankOutput> rank_output_of(Message& message) {
  if (message.descriptors.size() != kMostDescriptors) return std::nullopt;
  RankOutput output{.terminal = std::move(message.descriptors[0]),
                    .error = std::move(message.descriptors[1])};
  const char* end = message.text.data() + message.text.size();
  const auto [at, error] = std::from_chars(message.text.data(), end, output.rank);
  if (error != std::errc{} || at != end || output.rank < 0) return std::nullopt;
  return output;
}

int run_rank(char** program) {
  const char* rank = std::getenv("MUSTER_RANK");
  const char* folder = std::getenv("MUSTER_GENERATED");
  if (rank != nullptr && folder != nullptr) divert(std::atoi(rank), folder);
  ::execvp(*program, program);
  if (errno != ENOENT) {
    std::perror(*program);
    return kCannotExecute;
  }
  const std::vector<std::string> environment = base::current_environment();
  const auto path = base::find_program(*program, environment);
  const auto fault = path ? interpreter_fault(*path, environment) : std::nullopt;
  const std::string why = fault ? fault->what : "'" + std::string(*program) + "' was not found";
  dprintf(STDERR_FILENO, "muster: cannot run the command: %s\n", why.c_str());
  return kNoSuchProgram;
}

}  // namespace muster::engine
