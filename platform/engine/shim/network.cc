#include "engine/shim/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/modes.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr int kMostWaitMilliseconds = 10'000;
constexpr size_t kMostNamespaces = 2;
constexpr size_t kLongestWhy = 512;
constexpr const char* kInnerDevice = "eth0";

/// The argument of --network.
constexpr std::string_view kOwnNetwork = "own";
constexpr std::string_view kNoNetwork = "none";
constexpr std::string_view kNoIds = "-";

Result<void> write_map(const char* file, const std::string& text) {
  const UniqueFd opened(::open(file, O_WRONLY | O_CLOEXEC));
  if (opened && ::write(opened.get(), text.data(), text.size()) >= 0) return {};
  return base::system_error(std::string("cannot write ") + file, errno);
}

/// Enters a new user namespace that maps only this process's account, to itself. The kernel lets an
/// ordinary account write gid_map only after setgroups(2) is forbidden.
Result<void> make_user_namespace() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) {
    return base::system_error("cannot make a user namespace", errno);
  }
  MUSTER_CHECK(write_map("/proc/self/uid_map", user + " " + user + " 1"));
  MUSTER_CHECK(write_map("/proc/self/setgroups", "deny"));
  return write_map("/proc/self/gid_map", group + " " + group + " 1");
}

Result<void> switch_loopback_on() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (!socket || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return base::system_error("cannot find the loopback interface", errno);
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0) return {};
  return base::system_error("cannot switch the loopback interface on", errno);
}

Result<NetworkNamespace> open_namespaces(const std::string& process, bool with_network,
                                         bool with_user) {
  const auto open = [&](const char* name) {
    return UniqueFd(::open((process + name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  NetworkNamespace made;
  if (with_network) made.network = open("/ns/net");
  if (with_user) made.user = open("/ns/user");
  if (bool{made.network} == with_network && bool{made.user} == with_user) return made;
  return base::system_error("cannot open the network of " + process, errno);
}

/// The message of make_network_namespace() to the program.
std::vector<std::string> words_of_cable(const Cable& cable) {
  return {cable.bridge, cable.port, address_text(cable.address), std::to_string(cable.prefix),
          address_text(cable.gateway)};
}

Result<std::optional<Cable>> read_cable(char** arguments, int count) {
  if (count == 0) return std::optional<Cable>();
  if (count != 5) return base::Error{.what = "a cable has five arguments"};
  MUSTER_TRY(const Address4 address, read_address(arguments[2]));
  MUSTER_TRY(const Address4 gateway, read_address(arguments[4]));
  return std::optional<Cable>({.bridge = arguments[0],
                               .port = arguments[1],
                               .address = address,
                               .prefix = base::number_of<int>(arguments[3]).value_or(0),
                               .gateway = gateway});
}

/// Its other end is in the namespace that this process has just made.
Result<void> connect_cable(Links& outside, const Cable& cable) {
  MUSTER_CHECK(outside.make_cable(cable, kInnerDevice, ::getpid()));
  MUSTER_TRY(Links inside, Links::open());
  MUSTER_CHECK(inside.add_address(kInnerDevice, cable.address, cable.prefix));
  MUSTER_CHECK(inside.switch_on(kInnerDevice));
  return inside.add_default_route(cable.gateway);
}

/// Root makes the network alone. Another account first needs a user namespace, in which it has the
/// right to do so.
Result<NetworkNamespace> make_namespaces(const std::optional<IdSpace>& ids, bool is_own,
                                         const std::optional<Cable>& cable) {
  MUSTER_TRY(Links outside, Links::open());
  bool with_user = ids.has_value();
  if (ids) MUSTER_CHECK(enter_new_id_space(*ids));
  if (is_own && ::unshare(CLONE_NEWNET) != 0) {
    if (with_user) return base::system_error("cannot make a network namespace", errno);
    MUSTER_CHECK(make_user_namespace());
    with_user = true;
    if (::unshare(CLONE_NEWNET) != 0) {
      return base::system_error("cannot make a network namespace", errno);
    }
  }
  if (is_own) MUSTER_CHECK(switch_loopback_on());
  if (is_own && cable) MUSTER_CHECK(connect_cable(outside, *cable));
  return open_namespaces("/proc/self", is_own, with_user);
}

/// Buffer for the two descriptors of a message, aligned as sendmsg(2) requires.
union ControlBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(kMostNamespaces * sizeof(int))];
};

/// The content of an answer without an error: a letter for each descriptor.
constexpr char kOfNetwork = 'n';
constexpr char kOfUsers = 'u';

void send_answer(std::string_view why, const NetworkNamespace& made) {
  ControlBuffer control{};
  iovec text{.iov_base = const_cast<char*>(why.data()), .iov_len = why.size()};
  msghdr message{.msg_name = nullptr,
                 .msg_namelen = 0,
                 .msg_iov = &text,
                 .msg_iovlen = 1,
                 .msg_control = nullptr,
                 .msg_controllen = 0,
                 .msg_flags = 0};
  std::array<int, kMostNamespaces> descriptors{};
  size_t count = 0;
  for (const UniqueFd* each : {&made.network, &made.user}) {
    if (*each) descriptors[count++] = each->get();
  }
  if (count > 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), count * sizeof(int));
  }
  [[maybe_unused]] const ssize_t sent = ::sendmsg(kNetworkSocket, &message, MSG_NOSIGNAL);
}

Error no_network(const std::string& why) {
  const std::vector<std::string> settings = needed_namespace_settings();
  return {.code = ErrorCode::kUnavailable,
          .what = "cannot make a network for the job: " + why,
          .advice = (settings.empty() ? ""
                                      : "allow user namespaces (sysctl " +
                                            base::joined(settings, " ") + "), or ") +
                    "let all jobs share the machine's network: tasks.network: shared"};
}

Result<NetworkNamespace> receive_answer(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  if (::poll(&waiting, 1, kMostWaitMilliseconds) <= 0) return no_network("no answer in time");
  std::array<char, kLongestWhy> buffer{};
  ControlBuffer control{};
  iovec text{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{.msg_name = nullptr,
                 .msg_namelen = 0,
                 .msg_iov = &text,
                 .msg_iovlen = 1,
                 .msg_control = control.bytes,
                 .msg_controllen = sizeof control.bytes,
                 .msg_flags = 0};
  const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (count <= 0 || header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    const auto size = static_cast<size_t>(std::max<ssize_t>(count, 0));
    return no_network(size == 0 ? "the program that makes it ended"
                                : std::string(buffer.data(), size));
  }
  std::array<int, kMostNamespaces> descriptors{-1, -1};
  std::memcpy(descriptors.data(), CMSG_DATA(header),
              std::min(header->cmsg_len - CMSG_LEN(0), sizeof descriptors));
  NetworkNamespace made;
  for (size_t i = 0; i < std::min<size_t>(static_cast<size_t>(count), descriptors.size()); ++i) {
    (buffer[i] == kOfNetwork ? made.network : made.user) = UniqueFd(descriptors[i]);
  }
  return made;
}

bool is_same_namespace(const std::string& one, const std::string& other) {
  struct stat first{};
  struct stat second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_ino == second.st_ino;
}

}  // namespace

std::vector<std::string> needed_namespace_settings(const std::filesystem::path& root) {
  struct Setting {
    const char* name;
    bool forbids_at_zero;  ///< else at any other value
    const char* value;     ///< that allows user namespaces
  };
  // Those of all kernels, of Debian and of Ubuntu.
  constexpr std::array<Setting, 3> kSettings{
      {{"user.max_user_namespaces", true, "15000"},
       {"kernel.unprivileged_userns_clone", true, "1"},
       {"kernel.apparmor_restrict_unprivileged_userns", false, "0"}}};
  std::vector<std::string> needed;
  for (const Setting& setting : kSettings) {
    std::string path = setting.name;
    path[path.find('.')] = '/';
    const auto text = base::read_file(root / "proc/sys" / path, kLongestWhy);
    if (!text || text->empty()) continue;  // this kernel has no such setting
    const bool is_zero = *text == "0\n" || *text == "0";
    if (is_zero == setting.forbids_at_zero) {
      needed.push_back(std::string(setting.name) + "=" + setting.value);
    }
  }
  return needed;
}

int run_network(const char* network, const char* ids, char** cable_words, int count) {
  std::optional<IdSpace> space;
  if (ids != kNoIds) {
    auto decoded = decode_id_space(ids);
    if (decoded) space = *std::move(decoded);
  }
  const auto cable = read_cable(cable_words, count);
  const auto made = cable ? make_namespaces(space, network == kOwnNetwork, *cable)
                          : Result<NetworkNamespace>(cable.error());
  if (made) {
    send_answer(
        std::string(made->network ? 1 : 0, kOfNetwork) + std::string(made->user ? 1 : 0, kOfUsers),
        *made);
  } else {
    send_answer(made.error().what, {});
  }
  return made ? 0 : 1;
}

Result<NetworkNamespace> make_network_namespace(const std::string& shim,
                                                const std::optional<IdSpace>& ids, bool is_own,
                                                const std::optional<Cable>& cable) {
  MUSTER_TRY(Pair ends, make_control());
  std::vector<std::string> argv{shim, "--network", std::string(is_own ? kOwnNetwork : kNoNetwork),
                                ids ? encode(*ids) : std::string(kNoIds)};
  if (cable) {
    for (std::string& word : words_of_cable(*cable)) argv.push_back(std::move(word));
  }
  MUSTER_TRY(const base::Child maker,
             base::spawn({.argv = std::move(argv),
                          .environment = {},
                          .descriptors = {{ends.there.get(), kNetworkSocket}},
                          .folder = "/"}));
  ends.there.reset();
  auto made = receive_answer(ends.here.get());
  ends.here.reset();
  [[maybe_unused]] const auto ended = base::wait_for(maker);
  return made;
}

Result<NetworkNamespace> network_of(pid_t shim) {
  const std::string process = "/proc/" + std::to_string(shim);
  MUSTER_TRY(NetworkNamespace found,
             open_namespaces(process, !is_same_namespace(process + "/ns/net", "/proc/self/ns/net"),
                             !is_same_namespace(process + "/ns/user", "/proc/self/ns/user")));
  const std::string users = process + "/fd/" + std::to_string(kShimNetworkUsers);
  found.users = UniqueFd(::open(users.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  return found;
}

Result<void> enter_network(int network, int user) {
  if (user >= 0 && ::setns(user, CLONE_NEWUSER) != 0) {
    return base::system_error("cannot enter the user namespace of the job", errno);
  }
  if (network >= 0 && ::setns(network, CLONE_NEWNET) != 0) {
    return base::system_error("cannot enter the network of the job", errno);
  }
  // setns() into a user namespace makes a process undumpable: /proc/PID/ns then belongs to root.
  // The server reads it there to find the network again (network_of()).
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  return {};
}

}  // namespace muster::engine
