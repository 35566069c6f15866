#include "engine/shim/sampler.h"

#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/metric_log.h"
#include "engine/shim/process_tree.h"
#include "job/metric.h"

namespace muster::engine {

// --- GPUs

namespace {

constexpr int kOfTheChip = 0;  ///< NVML_TEMPERATURE_GPU

NvmlDevice* find_device(const NvmlLibrary& library, const std::string& name) {
  NvmlDevice* device = nullptr;
  const auto number = base::number_of<unsigned>(name);
  const NvmlStatus status = number ? library.handle.call(*number, &device)
                                   : library.handle_by_uuid.call(name.c_str(), &device);
  return status == kNvmlSuccess ? device : nullptr;
}

/// The sum of a value over all GPUs; absent if no GPU reports it.
class Sum {
 public:
  void add(NvmlStatus status, double value) {
    if (status == kNvmlSuccess) sum_ = sum_.value_or(0) + value;
  }
  void take_highest(NvmlStatus status, double value) {
    if (status == kNvmlSuccess) sum_ = std::max(sum_.value_or(value), value);
  }
  std::optional<double> value() const { return sum_; }

 private:
  std::optional<double> sum_;
};

}  // namespace

GpuUsage::GpuUsage(const std::string& library, const std::vector<std::string>& names) {
  if (names.empty()) return;
  auto opened = open_nvml(library);
  if (!opened) return;
  library_ = std::make_unique<NvmlLibrary>(*std::move(opened));
  session_ = std::make_unique<NvmlSession>(*library_);
  if (session_->status() != kNvmlSuccess) return;
  for (const std::string& name : names) {
    if (NvmlDevice* device = find_device(*library_, name)) devices_.push_back(device);
  }
}

std::vector<std::pair<std::string, double>> GpuUsage::look() const {
  Sum percent;
  Sum used;
  Sum free;
  Sum watts;
  Sum celsius;
  for (NvmlDevice* device : devices_) {
    NvmlUtilization utilization{};
    NvmlStatus status = library_->utilization.call(device, &utilization);
    percent.add(status, utilization.gpu);
    NvmlMemory memory{};
    status = library_->memory.call(device, &memory);
    used.add(status, static_cast<double>(memory.used));
    free.add(status, static_cast<double>(memory.free));
    unsigned number = 0;
    status = library_->power.call(device, &number);
    watts.add(status, number / 1000.0);
    status = library_->temperature.call(device, kOfTheChip, &number);
    celsius.take_highest(status, number);
  }
  std::vector<std::pair<std::string, double>> values;
  const auto put = [&](std::string_view name, const Sum& sum) {
    if (const auto value = sum.value()) values.emplace_back(name, *value);
  };
  put(job::kGpuPercent, percent);
  put(job::kGpuMemoryBytes, used);
  put(job::kGpuMemoryFree, free);
  put(job::kGpuPowerWatts, watts);
  put(job::kGpuCelsius, celsius);
  return values;
}

// --- TCP

namespace {

// States of TCP as the kernel numbers them (include/net/tcp_states.h). Sockets in these states are
// not counted.
constexpr uint32_t kTimeWait = 1U << 6;
constexpr uint32_t kClosed = 1U << 7;
constexpr uint32_t kListening = 1U << 10;
constexpr uint32_t kNewRequest = 1U << 12;
constexpr uint32_t kStates = 0xfffU & ~(kTimeWait | kClosed | kListening | kNewRequest);

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 what{};
};

bool request_sockets(int netlink, uint8_t family) {
  Question question{.header = {.nlmsg_len = sizeof question,
                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                    .what = {.sdiag_family = family,
                             .sdiag_protocol = IPPROTO_TCP,
                             .idiag_ext = 1U << (INET_DIAG_INFO - 1),
                             .idiag_states = kStates}};
  return ::send(netlink, &question, sizeof question, 0) == sizeof question;
}

/// False: the struct tcp_info of an older kernel lacks the counters.
bool read_tcp_info(const rtattr* attribute, TcpSocket& socket) {
  constexpr size_t kEnd = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  static_assert(offsetof(tcp_info, tcpi_bytes_acked) < kEnd);
  if (RTA_PAYLOAD(attribute) < kEnd) return false;
  tcp_info info{};
  std::memcpy(&info, RTA_DATA(attribute), kEnd);
  socket.sent = info.tcpi_bytes_acked;
  socket.received = info.tcpi_bytes_received;
  return true;
}

bool read_socket(const nlmsghdr* message, std::vector<TcpSocket>& sockets) {
  const auto* diag =
      reinterpret_cast<const inet_diag_msg*>(reinterpret_cast<const char*>(message) + NLMSG_HDRLEN);
  TcpSocket socket{.cookie = uint64_t{diag->id.idiag_cookie[1]} << 32 | diag->id.idiag_cookie[0],
                   .inode = diag->idiag_inode};
  auto room = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *diag));
  const auto* attribute = reinterpret_cast<const rtattr*>(diag + 1);
  for (; RTA_OK(attribute, room); attribute = RTA_NEXT(attribute, room)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    if (!read_tcp_info(attribute, socket)) return false;
    sockets.push_back(socket);
  }
  return true;
}

enum class Answer { kMore, kDone, kRefused };

Answer read_answer(const char* bytes, size_t length, std::vector<TcpSocket>& sockets) {
  auto rest = static_cast<unsigned>(length);
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  for (; NLMSG_OK(message, rest); message = NLMSG_NEXT(message, rest)) {
    if (message->nlmsg_type == NLMSG_DONE) return Answer::kDone;
    if (message->nlmsg_type == NLMSG_ERROR) return Answer::kRefused;
    if (!read_socket(message, sockets)) return Answer::kRefused;
  }
  return Answer::kMore;
}

/// Adds the sockets of an address family. False: the kernel does not report them.
bool add_sockets(int netlink, uint8_t family, std::vector<TcpSocket>& sockets) {
  if (!request_sockets(netlink, family)) return false;
  alignas(nlmsghdr) std::array<char, 32 << 10> buffer;
  while (true) {
    const ssize_t count = ::recv(netlink, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const Answer answer = read_answer(buffer.data(), static_cast<size_t>(count), sockets);
    if (answer != Answer::kMore) return answer == Answer::kDone;
  }
}

}  // namespace

std::optional<std::vector<TcpSocket>> tcp_sockets() {
  const base::UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  std::vector<TcpSocket> sockets;
  if (!netlink || !add_sockets(netlink.get(), AF_INET, sockets)) return std::nullopt;
  // The machine may have no IPv6.
  const size_t of_ipv4 = sockets.size();
  if (!add_sockets(netlink.get(), AF_INET6, sockets)) sockets.resize(of_ipv4);
  return sockets;
}

namespace {

/// Looking at a descriptor takes a few microseconds.
constexpr size_t kQuicklyRead = 1000;

/// Calls `visit` with the path of each socket that a process has open and its inode, until it returns
/// false. The kernel prints the target of a descriptor without its file system's help.
bool each_socket(pid_t pid, size_t& descriptors,
                 const std::function<bool(const std::string&, uint64_t)>& visit) {
  constexpr std::string_view kPrefix = "socket:[";
  std::array<char, 64> target{};
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return true;
  while (const dirent* entry = ::readdir(folder.get())) {
    ++descriptors;
    const ssize_t length =
        ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
    std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    const auto inode = base::number_of<uint64_t>(name.substr(0, name.find(']')));
    if (inode && !visit(path + "/" + entry->d_name, *inode)) return false;
  }
  return true;
}

/// The kernel names the protocol of a socket in an attribute: "TCP", "TCPv6", "UNIX-STREAM".
bool is_tcp(const std::string& socket) {
  std::array<char, 32> protocol{};
  const ssize_t length =
      ::getxattr(socket.c_str(), "system.sockprotoname", protocol.data(), protocol.size());
  if (length < 0) return errno != ENOENT;  // closed meanwhile, or a kernel without the attribute
  return std::string_view(protocol.data(), static_cast<size_t>(length)).starts_with("TCP");
}

}  // namespace

std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes) {
  std::set<uint64_t> inodes;
  size_t descriptors = 0;
  for (const pid_t pid : processes) {
    each_socket(pid, descriptors, [&](const std::string&, uint64_t inode) {
      inodes.insert(inode);
      return true;
    });
  }
  return inodes;
}

bool may_have_tcp(const std::vector<pid_t>& processes) {
  size_t descriptors = 0;
  for (const pid_t pid : processes) {
    const bool found_none = each_socket(pid, descriptors, [&](const std::string& socket, uint64_t) {
      return descriptors <= kQuicklyRead && !is_tcp(socket);
    });
    if (!found_none || descriptors > kQuicklyRead) return true;
  }
  return false;
}

std::vector<TcpSocket> SocketUsage::own_of(const std::vector<TcpSocket>& sockets,
                                           const std::function<std::set<uint64_t>()>& own) const {
  std::vector<TcpSocket> found;
  std::optional<std::set<uint64_t>> inodes;
  for (const TcpSocket& socket : sockets) {
    bool is_own = counted_.count(socket.cookie) > 0;
    if (!is_own && socket.inode != 0) {  // 0: not accepted yet
      if (!inodes) inodes = own();
      is_own = inodes->count(socket.inode) > 0;
    }
    if (is_own) found.push_back(socket);
  }
  return found;
}

Traffic SocketUsage::count(const std::vector<TcpSocket>& own) {
  Traffic traffic;
  std::map<uint64_t, Traffic> now;
  for (const TcpSocket& socket : own) {
    const auto found = counted_.find(socket.cookie);
    const Traffic before = found == counted_.end() ? Traffic{} : found->second;
    traffic.sent += socket.sent - std::min(socket.sent, before.sent);
    traffic.received += socket.received - std::min(socket.received, before.received);
    now[socket.cookie] = {.sent = socket.sent, .received = socket.received};
  }
  counted_ = std::move(now);
  return traffic;
}

// --- the sampler

namespace {

constexpr std::string_view kMemoryLine = "memory";
constexpr std::string_view kSocketsLine = "sockets";
constexpr std::string_view kSocketLine = "socket";
constexpr std::string_view kLastLine = "end";

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

std::string encode(const SlowLook& look) {
  std::string text;
  const auto line = [&](std::string_view word, const std::vector<uint64_t>& numbers) {
    text += word;
    for (const uint64_t number : numbers) text += " " + std::to_string(number);
    text += '\n';
  };
  for (const auto& [pid, bytes] : look.memory) {
    line(kMemoryLine, {static_cast<uint64_t>(pid), static_cast<uint64_t>(bytes)});
  }
  if (look.sockets) {
    line(kSocketsLine, {});
    for (const TcpSocket& socket : *look.sockets) {
      line(kSocketLine, {socket.cookie, socket.inode, socket.sent, socket.received});
    }
  }
  line(kLastLine, {});
  return text;
}

std::optional<SlowLook> decode_slow_look(std::string_view text) {
  SlowLook look;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    if (word == kLastLine) return look;
    if (word == kMemoryLine) {
      const auto pid = static_cast<pid_t>(take_number(text));
      look.memory[pid] = static_cast<int64_t>(take_number(text));
    } else if (word == kSocketsLine) {
      look.sockets.emplace();
    } else if (word == kSocketLine && look.sockets) {
      TcpSocket& socket = look.sockets->emplace_back();
      for (uint64_t* number : {&socket.cookie, &socket.inode, &socket.sent, &socket.received}) {
        *number = take_number(text);
      }
    }
  }
  return std::nullopt;
}

Sampler::Sampler(pid_t shim, pid_t left_out, Steady::time_point started)
    : processes_(shim, left_out), begun_(started), last_(started) {}

bool Sampler::begin(base::Time time, Steady::time_point now) {
  time_ = time;
  begun_ = now;
  look_ = processes_.look_at_processes();
  cpu_ += look_.cpu;
  return !look_.unmeasured.empty() || !reports_tcp_ || sockets_.has_sockets() ||
         may_have_tcp(look_.processes);
}

SlowLook Sampler::look_slowly() const {
  SlowLook look;
  for (const pid_t pid : look_.unmeasured) look.memory[pid] = proportional_memory("/proc", pid);
  if (const auto sockets = tcp_sockets()) {
    look.sockets = sockets_.own_of(*sockets, [&] { return socket_inodes(look_.processes); });
  }
  return look;
}

MetricSample Sampler::finish(const std::optional<SlowLook>& slow) {
  const double passed = std::max(seconds(begun_ - std::exchange(last_, begun_)), 1e-3);
  MetricSample sample{.time = time_, .rank = {}, .values = {}};
  const auto put = [&](std::string_view name, double value) {
    sample.values.emplace_back(name, value);
  };
  if (slow) {
    processes_.measured(slow->memory);
    reports_tcp_ = slow->sockets.has_value();
  }
  const std::chrono::nanoseconds cpu = std::exchange(cpu_, {});
  put(job::kCpuPercent, 100 * seconds(cpu) / passed);
  put(job::kMemoryBytes, static_cast<double>(processes_.memory_bytes()));
  if (!reports_tcp_.value_or(false)) return sample;
  const Traffic traffic = slow ? sockets_.count(*slow->sockets) : Traffic{};
  put(job::kNetworkReceived, static_cast<double>(traffic.received) / passed);
  put(job::kNetworkSent, static_cast<double>(traffic.sent) / passed);
  return sample;
}

std::chrono::steady_clock::duration rest_after(std::chrono::steady_clock::time_point begin,
                                               std::chrono::milliseconds interval) {
  const auto end = std::chrono::steady_clock::now();
  return std::max<std::chrono::steady_clock::duration>(begin + interval - end,
                                                       kRestForWork * (end - begin));
}

// --- the program muster-gpu-sampler

using Steady = std::chrono::steady_clock;

namespace {

/// False: no process reads standard output any more.
bool wait(Steady::duration duration) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(duration);
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, static_cast<int>(whole.count())) <= 0;
}

}  // namespace

std::vector<std::string> arguments_of(const SamplerPlan& plan) {
  std::vector<std::string> arguments{std::to_string(plan.shim),
                                     std::to_string(plan.started.time_since_epoch().count()),
                                     std::to_string(plan.interval.count()), plan.nvml};
  arguments.insert(arguments.end(), plan.gpus.begin(), plan.gpus.end());
  return arguments;
}

base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments) {
  constexpr size_t kFirstGpu = 4;
  const base::Error none{.code = base::ErrorCode::kInvalid,
                         .what = "these arguments do not describe a task to measure"};
  if (arguments.size() < kFirstGpu) return none;
  const auto shim = base::number_of<pid_t>(arguments[0]);
  const auto started = base::number_of<int64_t>(arguments[1]);
  const auto interval = base::number_of<int>(arguments[2]);
  if (!shim || !started || !interval || *interval <= 0) return none;
  return SamplerPlan{.shim = *shim,
                     .started = Steady::time_point(Steady::duration(*started)),
                     .interval = std::chrono::milliseconds(*interval),
                     .nvml = arguments[3],
                     .gpus = {arguments.begin() + kFirstGpu, arguments.end()}};
}

int run_sampler(const SamplerPlan& plan, const LookAtGpus& gpus) {
  ::signal(SIGPIPE, SIG_IGN);
  Sampler sampler(plan.shim, ::getpid(), plan.started);
  const base::SystemClock clock;
  while (true) {
    const Steady::time_point begin = Steady::now();
    const bool is_slow = sampler.begin(clock.now(), begin);
    MetricSample sample =
        sampler.finish(is_slow ? std::optional(sampler.look_slowly()) : std::nullopt);
    for (const auto& [name, value] : gpus()) sample.values.emplace_back(name, value);
    if (!base::write_all(STDOUT_FILENO, encode_sample(sample))) return 0;
    if (!wait(rest_after(begin, plan.interval))) return 0;
  }
}

}  // namespace muster::engine
