#include "engine/process/egress.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "engine/shim/channels.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

// A server has at most some hundred gangs.
constexpr int kBlockPrefix = 22;
constexpr uint32_t kFirstHost = 2;  // behind the network's own address and the bridge's
// Servers of one machine change its network one after the other.
constexpr const char* kLock = "/run/muster-network.lock";
constexpr const char* kGuard = "inet muster_guard";
// Network namespaces vanish some milliseconds after their last process.
constexpr int kWaitsForCables = 50;
constexpr std::chrono::milliseconds kCablePause{10};

uint32_t size_of(const Network4& network) {
  return network.prefix == 0 ? UINT32_MAX : uint32_t{1} << (32 - network.prefix);
}

Address4 last_of(const Network4& network) {
  return network.prefix == 0 ? UINT32_MAX : network.first + (size_of(network) - 1);
}

/// FNV-1a.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

Error no_egress(const std::string& why) {
  return {.code = ErrorCode::kUnavailable,
          .what = "jobs have no way to the Internet: " + why,
          .advice =
              "docs/isolation.md lists what is needed; tasks.internet: false if no job needs "
              "the Internet"};
}

// --- nft

Result<std::string> nft_program() {
  if (auto found = base::find_program("nft", base::current_environment())) return found;
  for (const char* place : {"/usr/sbin/nft", "/sbin/nft"}) {
    if (::access(place, X_OK) == 0) return std::string(place);
  }
  return no_egress("nft is not installed (apt install nftables)");
}

/// Empty where the file cannot be read.
std::string content_of_file(const std::string& path) {
  auto text = base::read_file(path, 1 << 20);
  return text ? *std::move(text) : std::string();
}

std::string text_in(const UniqueFd& file) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count =
        ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

/// Runs `nft` with these arguments and returns its output; `input` is its standard input.
Result<std::string> ask_nft(std::vector<std::string> words, std::string_view input = "") {
  MUSTER_TRY(const std::string program, nft_program());
  words.insert(words.begin(), program);
  MUSTER_TRY(const UniqueFd in, in_memory_file(input));
  MUSTER_TRY(const UniqueFd out, in_memory_file(""));
  MUSTER_TRY(const UniqueFd errors, in_memory_file(""));
  MUSTER_TRY(const base::Child nft,
             base::spawn({.argv = std::move(words),
                          .environment = {"LC_ALL=C"},
                          .descriptors = {{in.get(), 0}, {out.get(), 1}, {errors.get(), 2}},
                          .folder = "/"}));
  MUSTER_TRY(const int status, base::wait_for(nft));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text_in(out);
  const std::string words_of_nft = text_in(errors);
  return no_egress("nft: " + words_of_nft.substr(0, words_of_nft.find('\n')));
}

// --- what the machine has

/// Held while the network of the machine is changed. Without it, two servers that start at the same
/// time could choose the same addresses. The last server removes the file while it holds the lock, so
/// a server that waited for it may hold a file that has no name any more.
UniqueFd lock_network() {
  while (true) {
    UniqueFd lock(::open(kLock, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return lock;
    struct stat held{};
    struct stat named{};
    const bool is_current = ::fstat(lock.get(), &held) == 0 && ::stat(kLock, &named) == 0 &&
                            held.st_ino == named.st_ino && held.st_dev == named.st_dev;
    if (is_current) return lock;
  }
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> all(
      ::if_nameindex(), &::if_freenameindex);
  for (const struct if_nameindex* each = all.get(); each != nullptr && each->if_index != 0;
       ++each) {
    names.emplace_back(each->if_name);
  }
  return names;
}

/// An address of a device of the machine.
struct DeviceAddress {
  std::string device;
  Address4 address = 0;
  Network4 network;
};

std::vector<DeviceAddress> device_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<DeviceAddress> found;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool is_version_4 = each->ifa_addr != nullptr && each->ifa_netmask != nullptr &&
                              each->ifa_addr->sa_family == AF_INET;
    if (!is_version_4) continue;
    const auto raw = [](const sockaddr* address) {
      return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    };
    const Address4 mask = raw(each->ifa_netmask);
    const Address4 address = raw(each->ifa_addr);
    found.push_back({.device = each->ifa_name,
                     .address = address,
                     .network = {.first = address & mask, .prefix = __builtin_popcount(mask)}});
  }
  return found;
}

std::vector<Address4> addresses_of_devices() {
  std::vector<Address4> found;
  for (const DeviceAddress& each : device_addresses()) found.push_back(each.address);
  return found;
}

/// The networks to which the machine has routes, without the default one.
std::vector<Network4> routed_networks() {
  std::vector<Network4> found;
  std::istringstream lines(content_of_file("/proc/self/net/route"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    // DEVICE DESTINATION GATEWAY FLAGS REFCNT USE METRIC MASK ..., in the order of the wire
    std::istringstream words(line);
    std::string device;
    std::string skipped;
    uint32_t destination = 0;
    uint32_t mask = 0;
    words >> device >> std::hex >> destination;
    for (int i = 0; i < 5; ++i) words >> skipped;
    words >> std::hex >> mask;
    if (!words || mask == 0) continue;
    found.push_back({.first = ntohl(destination), .prefix = __builtin_popcount(mask)});
  }
  return found;
}

// --- forwarding

fs::path forwarding_file(const std::string& device) {
  return "/proc/sys/net/ipv4/conf/" + device + "/forwarding";
}

Result<void> set_forwarding(const std::string& device, bool on) {
  const UniqueFd file(::open(forwarding_file(device).c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), on ? "1" : "0", 1) == 1) return {};
  const std::string what = std::string("cannot switch forwarding ") + (on ? "on" : "off");
  return no_egress(base::system_error(what + " for " + device, errno).what);
}

bool forwards(const std::string& device) {
  return content_of_file(forwarding_file(device).string()).starts_with('1');
}

bool is_ours(const std::string& device) {
  const size_t dash = device.find('-');
  return device.starts_with("muster-") || (device.starts_with("mu") && dash == 8);
}

/// The words in quotes: the names of devices in a set that nft lists.
std::set<std::string> quoted_words(const std::string& text) {
  std::set<std::string> words;
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    const size_t end = text.find('"', at + 1);
    if (end == std::string::npos) break;
    words.insert(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

std::string guard_text(const std::set<std::string>& devices) {
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "\"" : ", \"") + device + "\"";
  const std::string table = kGuard;
  return "table " + table + "\ndelete table " + table + "\ntable " + table +
         " {\n"
         "  set forwarded_nothing { type ifname; elements = { " +
         list +
         " } }\n"
         "  chain forward {\n"
         "    type filter hook forward priority filter - 6; policy accept;\n"
         "    iifname @forwarded_nothing oifname @forwarded_nothing drop\n"
         "  }\n"
         "}\n";
}

/// Devices for which an earlier server or another one has switched forwarding on.
std::set<std::string> guarded_devices() {
  const auto listed = ask_nft({"list", "set", "inet", "muster_guard", "forwarded_nothing"});
  return listed ? quoted_words(*listed) : std::set<std::string>();
}

/// Switches forwarding off again where it was off.
void remove_guard() {
  const std::set<std::string> guarded = guarded_devices();
  for (const std::string& device : guarded) {
    [[maybe_unused]] const auto off = set_forwarding(device, false);
  }
  if (guarded.empty()) return;
  [[maybe_unused]] const auto removed = ask_nft({"delete", "table", "inet", "muster_guard"});
}

// --- nameservers

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "0.0.0.0";
}

/// The addresses behind "nameserver" in a resolv.conf that tasks can reach.
std::vector<std::string> nameservers_in(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::string address;
    words >> key >> address;
    if (key == "nameserver" && !is_loopback(address) && read_address(address)) {
      found.push_back(address);
    }
  }
  return found;
}

/// All lines of a resolv.conf but those that name servers.
std::string without_nameservers(const std::string& text) {
  std::string rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool stays = line.starts_with("search") || line.starts_with("domain") ||
                       line.starts_with("options") || line.starts_with("sortlist");
    if (stays) rest += line + "\n";
  }
  return rest;
}

}  // namespace

Result<Network4> read_network(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  MUSTER_TRY(const Address4 address, read_address(text.substr(0, slash)));
  int prefix = 32;
  if (slash < text.size()) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, prefix);
    if (error != std::errc{} || rest != end || prefix < 0 || prefix > 32) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "invalid network '" + text + "': expected one such as 10.0.0.0/16"};
    }
  }
  const Address4 mask = prefix == 0 ? 0 : UINT32_MAX << (32 - prefix);
  return Network4{.first = address & mask, .prefix = prefix};
}

std::string network_text(const Network4& network) {
  return address_text(network.first) + "/" + std::to_string(network.prefix);
}

bool overlap(const Network4& one, const Network4& other) {
  return one.first <= last_of(other) && other.first <= last_of(one);
}

Resolver resolver_for_jobs(const std::vector<std::string>& configured, const std::string& root) {
  const std::string machines = content_of_file(root + "/etc/resolv.conf");
  Resolver resolver{.text = without_nameservers(machines), .nameservers = configured};
  for (const char* file : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf",
                           "/run/NetworkManager/no-stub-resolv.conf"}) {
    if (!resolver.nameservers.empty()) break;
    resolver.nameservers = nameservers_in(content_of_file(root + file));
  }
  for (const std::string& address : resolver.nameservers) {
    resolver.text += "nameserver " + address + "\n";
  }
  return resolver;
}

std::string rules_text(const std::string& id, const Network4& network,
                       const std::vector<Network4>& refused,
                       const std::vector<std::string>& nameservers) {
  const std::string bridge = "\"muster-" + id + "\"";
  const std::string table = "inet muster_" + id;
  const std::string reject = " reject with icmpx admin-prohibited\n";
  std::string servers;
  for (const std::string& address : nameservers) servers += (servers.empty() ? "" : ", ") + address;
  std::string text = "table " + table + "\ndelete table " + table + "\ntable " + table + " {\n";
  // In front of all that changes addresses: a port of a container that is published on an address
  // of this machine counts as this machine's, too.
  text +=
      "  chain from_jobs {\n"
      "    type filter hook prerouting priority -160; policy accept;\n"
      "    iifname != " +
      bridge +
      " accept\n"
      "    meta nfproto ipv6 drop\n"
      "    ip saddr != " +
      network_text(network) + " drop\n";
  if (!servers.empty()) {
    text += "    ip daddr { " + servers + " } meta l4proto { tcp, udp } th dport 53 accept\n";
  }
  text += "    fib daddr type != unicast" + reject;
  for (const Network4& each : refused) text += "    ip daddr " + network_text(each) + reject;
  text +=
      "  }\n"
      "  chain forward {\n"
      "    type filter hook forward priority filter - 5; policy accept;\n"
      "    iifname " +
      bridge + " oifname \"muster-*\"" + reject + "    oifname " + bridge +
      " ct state { established, related } accept\n"
      "    oifname " +
      bridge +
      " drop\n"
      "  }\n"
      "  chain from_machine {\n"
      "    type filter hook output priority filter - 5; policy accept;\n"
      "    oifname " +
      bridge +
      " ct state { established, related } accept\n"
      "    oifname " +
      bridge +
      " drop\n"
      "  }\n"
      "  chain addresses {\n"
      "    type nat hook postrouting priority srcnat; policy accept;\n"
      "    ip saddr " +
      network_text(network) +
      " oifname != \"muster-*\" masquerade\n"
      "  }\n"
      "}\n";
  return text;
}

std::string rules_for_pasta(const std::vector<Network4>& refused, const std::vector<Address4>& own,
                            const std::vector<std::string>& nameservers) {
  const std::string reject = " reject with icmpx admin-prohibited\n";
  std::string text =
      "table inet muster {\n"
      "  chain from_jobs {\n"
      "    type filter hook output priority filter; policy accept;\n"
      "    oifname \"lo\" accept\n"
      "    meta nfproto ipv6 drop\n";
  for (const std::string& address : nameservers) {
    text += "    ip daddr " + address + " meta l4proto { tcp, udp } th dport 53 accept\n";
  }
  for (const Address4 address : own) text += "    ip daddr " + address_text(address) + reject;
  for (const Network4& each : refused) text += "    ip daddr " + network_text(each) + reject;
  return text + "  }\n}\n";
}

Result<PastaPlan> pasta_plan(const EgressOptions& options) {
  const std::string account = "the server does not run as root, and ";
  auto pasta = base::find_program("pasta", base::current_environment());
  if (!pasta) return no_egress(account + "pasta is not installed (apt install passt)");
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) {
    return no_egress(account + "its account may not open /dev/net/tun, which pasta needs");
  }
  MUSTER_TRY(std::string nft, nft_program());
  const Resolver resolver = resolver_for_jobs(options.nameservers);
  return PastaPlan{
      .pasta = *std::move(pasta),
      .nft = std::move(nft),
      .rules = rules_for_pasta(options.refused, addresses_of_devices(), resolver.nameservers)};
}

Result<std::string> check_egress(const EgressOptions& options) {
  if (::geteuid() == 0) {
    MUSTER_CHECK(Egress::check(options));
    return std::string("over a bridge");
  }
  if (const auto plan = pasta_plan(options); !plan) return plan.error();
  return std::string("by pasta");
}

Egress::Egress(EgressOptions options) : options_(std::move(options)) {
  std::array<char, 7> id{};
  std::snprintf(id.data(), id.size(), "%06x", hash_of(options_.jobs_folder) & 0xffffff);
  id_ = id.data();
  bridge_ = "muster-" + id_;
}

Result<Egress> Egress::open(EgressOptions options) {
  Egress made(std::move(options));
  MUSTER_CHECK(made.set_up());
  return made;
}

Result<void> Egress::check(const EgressOptions& options) {
  if (::geteuid() != 0) return no_egress("the server does not run as root");
  if (::access("/proc/sys/net/ipv4/conf/all/forwarding", W_OK) != 0) {
    return no_egress("/proc/sys is read-only");
  }
  const auto rules = rules_text("check", options.range, options.refused, options.nameservers);
  MUSTER_CHECK(ask_nft({"-c", "-f", "-"}, rules));
  return {};
}

Result<void> Egress::set_up() {
  MUSTER_CHECK(check(options_));
  const UniqueFd lock = lock_network();
  MUSTER_TRY(Links links, Links::open());
  MUSTER_CHECK(links.make_bridge(bridge_));
  MUSTER_CHECK(take_block());
  // Rules first: a gang of an earlier server may be connected.
  MUSTER_CHECK(set_rules());
  MUSTER_CHECK(links.add_address(bridge_, network_.first + 1, network_.prefix));
  MUSTER_CHECK(links.switch_on(bridge_));
  return forward();
}

/// The part of the range that the bridge has already, or the first one, from a place that depends
/// on the server, that no device and no route of the machine has.
Result<void> Egress::take_block() {
  std::vector<Network4> taken = routed_networks();
  for (const DeviceAddress& each : device_addresses()) {
    if (each.device == bridge_) {
      network_ = each.network;
      return {};
    }
    taken.push_back(each.network);
  }
  const int prefix = std::max(options_.range.prefix, kBlockPrefix);
  const uint32_t blocks = uint32_t{1} << (prefix - options_.range.prefix);
  const uint32_t start = hash_of(options_.jobs_folder) >> 8;
  for (uint32_t i = 0; i < blocks; ++i) {
    const uint32_t block = (start + i) % blocks;
    network_ = {.first = options_.range.first + block * (uint32_t{1} << (32 - prefix)),
                .prefix = prefix};
    const bool is_free = std::none_of(taken.begin(), taken.end(), [this](const Network4& other) {
      return overlap(network_, other);
    });
    if (is_free) return {};
  }
  return no_egress("all of " + network_text(options_.range) +
                   " (tasks.internet_range) is in use on this machine");
}

Result<void> Egress::set_rules() {
  const Resolver resolver = resolver_for_jobs(options_.nameservers);
  const auto set =
      ask_nft({"-f", "-"}, rules_text(id_, network_, options_.refused, resolver.nameservers));
  return set ? Result<void>() : set.error();
}

Result<void> Egress::forward() {
  const std::set<std::string> before = guarded_devices();
  std::set<std::string> guarded = before;
  for (const std::string& device : device_names()) {
    if (device != "lo" && !is_ours(device) && !forwards(device)) guarded.insert(device);
  }
  // The guard stands before the first device forwards anything.
  if (guarded != before) MUSTER_CHECK(ask_nft({"-f", "-"}, guard_text(guarded)));
  for (const std::string& device : guarded) {
    // A device may have been removed since.
    const bool exists = ::if_nametoindex(device.c_str()) != 0;
    if (exists && !forwards(device)) MUSTER_CHECK(set_forwarding(device, true));
  }
  return set_forwarding(bridge_, true);
}

bool Egress::has_cables() const {
  const std::vector<std::string> names = device_names();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.starts_with("mu" + id_ + "-"); });
}

Result<Cable> Egress::next_cable() {
  const bool is_there = ::if_nametoindex(bridge_.c_str()) != 0 &&
                        ask_nft({"list", "chain", "inet", "muster_" + id_, "from_jobs"});
  if (!is_there) MUSTER_CHECK(set_up());
  const uint32_t slots = size_of(network_) - kFirstHost - 1;
  for (uint32_t tried = 0; tried < slots; ++tried) {
    const uint32_t slot = next_slot_++ % slots;
    const std::string port = "mu" + id_ + "-" + std::to_string(slot);
    if (::if_nametoindex(port.c_str()) != 0) continue;
    return Cable{.bridge = bridge_,
                 .port = port,
                 .address = network_.first + kFirstHost + slot,
                 .prefix = network_.prefix,
                 .gateway = network_.first + 1};
  }
  return no_egress("all addresses of " + network_text(network_) + " are in use");
}

bool Egress::remove_left(const std::string& jobs_folder) {
  Egress left({.jobs_folder = jobs_folder});
  const bool is_there = ::geteuid() == 0 && ::if_nametoindex(left.bridge_.c_str()) != 0;
  if (!is_there) return true;
  if (left.has_cables()) return false;
  left.close();
  return true;
}

// The bridge last: while it is there, a server that finds it repeats the rest.
void Egress::close() {
  for (int i = 0; i < kWaitsForCables && has_cables(); ++i) {
    std::this_thread::sleep_for(kCablePause);
  }
  const UniqueFd lock = lock_network();
  if (has_cables()) return;
  auto links = Links::open();
  if (!links) return;
  [[maybe_unused]] const auto gone = ask_nft({"delete", "table", "inet", "muster_" + id_});
  const std::vector<std::string> names = device_names();
  const bool is_last = std::none_of(names.begin(), names.end(), [this](const std::string& name) {
    return name != bridge_ && is_ours(name);
  });
  if (is_last) remove_guard();
  if (const auto removed = links->remove(bridge_); !removed) base::log_error(removed.error().what);
  if (is_last) ::unlink(kLock);
}

}  // namespace muster::engine
