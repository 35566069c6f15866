#include "engine/shim/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/subprocess.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/exec.h"
#include "engine/shim/modes.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;
using job::LogStream;

// --- output of a rank

namespace {

constexpr size_t kLongestMessage = 8192;
constexpr size_t kMostDescriptors = 2;
constexpr int kCannotExecute = 126;
constexpr int kNoSuchProgram = 127;
constexpr const char* kSocket = "output";

/// A terminal in raw mode, which passes bytes unchanged.
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

/// Waits until process 1 of the task has sent the output to the shim. A task may be killed as soon
/// as its launcher has ended, and output that waits in a socket of process 1 then is lost.
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
    return Error{.code = ErrorCode::kUnavailable, .what = "no message has arrived"};
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

// --- tags in the output of a launcher

namespace {

// The longest tags look like "[prterun-a-long-host-name-4711@1,123456]<stderr>:".
constexpr size_t kLongestRankTag = 96;

struct StreamName {
  std::string_view name;
  LogStream stream;
};
constexpr std::array<StreamName, 3> kStreams{{{"<stdout>:", LogStream::kOutput},
                                              {"<stderr>:", LogStream::kError},
                                              {"<stddiag>:", LogStream::kError}}};

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// Whether the text may be within the brackets of a tag: a rank, or a job and a rank.
bool may_be_inside(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == ',' || letter == '@' || letter == '-' ||
           letter == '.' || letter == '_';
  });
}

}  // namespace

RankTags::Found RankTags::read_tag(std::string_view text, Tag& tag) const {
  if (text.front() != '[') return Found::kNone;
  const size_t close = text.substr(0, kLongestRankTag).find(']');
  if (!may_be_inside(text.substr(1, std::min(close, text.size()) - 1))) return Found::kNone;
  if (close == std::string_view::npos) {
    return text.size() < kLongestRankTag ? Found::kUndecided : Found::kNone;
  }
  const std::string_view inside = text.substr(1, close - 1);
  const auto rank = number_of(inside.substr(inside.rfind(',') + 1));
  if (!rank) return Found::kNone;
  tag.rank = *rank;
  const std::string_view behind = text.substr(close + 1);
  if (behind.empty()) return Found::kUndecided;
  if (bare_ && at_start_ && behind.front() == ' ' && number_of(inside)) {
    tag.stream = stream_;
    tag.size = close + 2;
    tag.bare = true;
    return Found::kTag;
  }
  for (const StreamName& known : kStreams) {
    // One more byte is needed: it may be a blank that belongs to the tag.
    if (behind.size() <= known.name.size()) {
      if (known.name.starts_with(behind)) return Found::kUndecided;
    } else if (behind.starts_with(known.name)) {
      tag.stream = known.stream;
      tag.size = close + 1 + known.name.size();
      tag.bare = false;
      return Found::kTag;
    }
  }
  return Found::kNone;
}

/// The size of the tag. While every tag so far had a blank after it (Open MPI 5), the blank belongs
/// to the tag.
size_t RankTags::size_of(const Tag& tag, std::string_view text) {
  if (tag.bare) return tag.size;
  const char behind = text[tag.size];
  if (behind != ' ' && behind != '\n') blank_behind_ = false;
  return tag.size + (blank_behind_ && behind == ' ' ? 1 : 0);
}

/// How many of the next bytes belong to the current rank, whatever follows them.
size_t RankTags::plain_bytes(std::string_view text) const {
  const size_t newline = text.find('\n');
  const size_t line = newline == std::string_view::npos ? text.size() : newline + 1;
  if (!in_tagged_) return line;
  // The first byte does not begin a tag: the caller has checked it.
  return std::min(line, text.find('[', 1));
}

void RankTags::take(std::string_view bytes, const Emit& emit) {
  // Consecutive lines without a rank are emitted in one piece.
  const char* begin = bytes.data();
  const auto pass_on = [&](const char* end) {
    if (end != begin) emit(rank_, line_stream_, {begin, static_cast<size_t>(end - begin)});
    begin = end;
  };
  while (!bytes.empty()) {
    if (at_start_ || in_tagged_) {
      Tag tag;
      const Found found = read_tag(bytes, tag);
      if (found == Found::kUndecided) break;
      const bool changes = found == Found::kTag || (at_start_ && rank_);
      if (changes) pass_on(bytes.data());
      if (found == Found::kTag) {
        bytes.remove_prefix(size_of(tag, bytes));
        begin = bytes.data();
        rank_ = tag.rank;
        line_stream_ = tag.stream;
        in_tagged_ = !tag.bare;
        at_start_ = false;
        continue;
      }
      if (at_start_) {
        rank_.reset();
        line_stream_ = stream_;
        in_tagged_ = false;
      }
    }
    const size_t plain = plain_bytes(bytes);
    at_start_ = bytes[plain - 1] == '\n';
    bytes.remove_prefix(plain);
  }
  pass_on(bytes.data());
  held_ = bytes;
}

void RankTags::add(std::string_view bytes, const Emit& emit) {
  if (held_.empty()) return take(bytes, emit);
  const std::string whole = std::exchange(held_, {}).append(bytes);
  take(whole, emit);
}

void RankTags::finish(const Emit& emit) {
  if (held_.empty()) return;
  // The held bytes did not become a tag: they are text without a rank.
  if (at_start_) {
    rank_.reset();
    line_stream_ = stream_;
  }
  emit(rank_, line_stream_, std::exchange(held_, {}));
}

// --- census

namespace {

// hydra_pmi_proxy and hydra_bstrap_proxy, as the kernel stores them: 15 bytes.
constexpr std::array<std::string_view, 2> kProxies{"hydra_pmi_proxy", "hydra_bstrap_pr"};

/// The pause is a tenth of the time since the last start, so that every rank is found that lives at
/// least a tenth of that time.
constexpr int kPartOfAge = 10;
constexpr std::chrono::milliseconds kShortestRest{5};
constexpr std::chrono::milliseconds kLongestRest{2000};

std::optional<int> number_behind(std::string_view entry, std::string_view name) {
  if (!entry.starts_with(name)) return std::nullopt;
  return base::number_of<int>(entry.substr(name.size()));
}

/// A question that has waited for its answer this long counts as one that no rank will answer.
constexpr std::chrono::seconds kHangsFor{5};
/// Size of the frame by which UCX asks over TCP whether all data has arrived.
constexpr uint64_t kQuestionBytes = 25;

uint64_t hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

/// The descriptor of the connection to the process manager (PMI_FD).
std::optional<int> pmi_descriptor_in(std::string_view environment) {
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    if (const auto number = number_behind(environment.substr(0, end), "PMI_FD=")) return number;
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return std::nullopt;
}

/// Whether the process waits in read(2) on this descriptor. /proc/PID/syscall contains the number
/// of the system call and its arguments: "0 0x6 0x7f...".
bool reads_from(const fs::path& process, int descriptor) {
  const std::string text = read_proc_file(process / "syscall");
  std::string_view rest = text;
  return take_word(rest) == std::to_string(SYS_read) &&
         hexadecimal(take_word(rest)) == static_cast<uint64_t>(descriptor);
}

/// The sockets of a process, each as "socket:[INODE]".
std::set<std::string> sockets_of(const fs::path& process) {
  std::set<std::string> sockets;
  for (const pid_t descriptor : numbered_entries(process / "fd")) {
    std::error_code error;
    const fs::path target = fs::read_symlink(process / "fd" / std::to_string(descriptor), error);
    if (!error && target.native().starts_with("socket:[")) sockets.insert(target.native());
  }
  return sockets;
}

/// Whether a connection of the process holds a question that the process has not read. The columns
/// of /proc/PID/net/tcp: slot, two addresses, state, sent:received, timer, retransmissions, user,
/// timeout, inode.
bool leaves_a_question(const fs::path& process) {
  const std::set<std::string> sockets = sockets_of(process);
  const std::string table = read_proc_file(process / "net" / "tcp");
  std::string_view rest = table;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::array<std::string_view, 10> columns;
    for (std::string_view& column : columns) column = take_word(line);
    const size_t colon = columns[4].find(':');
    if (colon == std::string_view::npos) continue;
    if (hexadecimal(columns[4].substr(colon + 1)) < kQuestionBytes) continue;
    if (sockets.contains("socket:[" + std::string(columns[9]) + "]")) return true;
  }
  return false;
}

/// Calls `found` for each process that a proxy below `root` has started as a rank.
void each_rank_below(
    pid_t root, const fs::path& proc,
    const std::function<void(pid_t, const SignedRank&, const std::string& environment)>& found) {
  struct Process {
    pid_t pid;
    uint64_t threads;
    bool is_proxy;
  };
  const ProcessChildren children(proc, root);
  std::vector<Process> open{{root, 1, false}};
  while (!open.empty()) {
    const Process parent = open.back();
    open.pop_back();
    for (const pid_t pid : children.of(parent.pid, parent.threads)) {
      const fs::path process = proc / std::to_string(pid);
      const std::string stat = read_proc_file(process / "stat");
      const auto state = parse_stat(stat);
      if (!state) continue;
      const std::string_view name = name_in_stat(stat);
      const bool is_proxy = std::find(kProxies.begin(), kProxies.end(), name) != kProxies.end();
      open.push_back({pid, state->second.threads, is_proxy});
      if (!parent.is_proxy || is_proxy) continue;
      const std::string environment = read_proc_file(process / "environ");
      if (const auto rank = rank_of_environment(environment)) found(pid, *rank, environment);
    }
  }
}

bool hangs(const fs::path& process, const std::string& environment) {
  const auto descriptor = pmi_descriptor_in(environment);
  return descriptor && reads_from(process, *descriptor) && leaves_a_question(process);
}

}  // namespace

std::optional<SignedRank> rank_of_environment(std::string_view environment) {
  std::optional<int> rank;
  std::optional<int> size;
  while (!environment.empty()) {
    const size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    environment.remove_prefix(std::min(end + 1, environment.size()));
    if (const auto number = number_behind(entry, "PMI_RANK=")) rank = number;
    if (const auto number = number_behind(entry, "PMI_SIZE=")) size = number;
  }
  if (!rank || !size || *rank < 0 || *size <= *rank) return std::nullopt;
  return SignedRank{.rank = *rank, .world_size = *size};
}

std::vector<SignedRank> ranks_below(pid_t root, const fs::path& proc) {
  std::vector<SignedRank> ranks;
  each_rank_below(root, proc, [&](pid_t, const SignedRank& rank, const std::string&) {
    ranks.push_back(rank);
  });
  return ranks;
}

std::vector<pid_t> hanging_below(pid_t root, const fs::path& proc) {
  std::vector<pid_t> hanging;
  each_rank_below(root, proc, [&](pid_t pid, const SignedRank&, const std::string& environment) {
    if (hangs(proc / std::to_string(pid), environment)) hanging.push_back(pid);
  });
  return hanging;
}

std::chrono::nanoseconds pause_after(std::chrono::nanoseconds age, std::chrono::nanoseconds cost) {
  const auto pause =
      std::clamp<std::chrono::nanoseconds>(age / kPartOfAge, kShortestRest, kLongestRest);
  return std::max(pause, kRestForWork * cost);
}

void RankWatch::started(Steady::time_point now) {
  started_ = now;
  due_ = now + kShortestRest;
}

void RankWatch::look() {
  if (!started_) return;
  const Steady::time_point begin = Steady::now();
  const auto enter = [&](const SignedRank& rank) {
    const auto known = signed_in_.find(rank.rank);
    if (known != signed_in_.end() && known->second == rank.world_size) return;
    if (sign_in(folder_, rank)) signed_in_[rank.rank] = rank.world_size;
  };
  std::map<pid_t, Steady::time_point> hanging;
  each_rank_below(::getpid(), "/proc",
                  [&](pid_t pid, const SignedRank& rank, const std::string& environment) {
                    enter(rank);
                    if (!hangs(fs::path("/proc") / std::to_string(pid), environment)) return;
                    const auto since = hanging_.find(pid);
                    hanging[pid] = since == hanging_.end() ? begin : since->second;
                    if (begin - hanging[pid] >= kHangsFor)
                      enter({.rank = kHangs, .world_size = rank.world_size});
                  });
  hanging_ = std::move(hanging);
  const Steady::time_point end = Steady::now();
  due_ = end + pause_after(end - *started_, end - begin);
}

}  // namespace muster::engine
