#include "engine/node/brief.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

Error unreadable(const char* what) {
  return {.code = ErrorCode::kInvalid, .what = std::string(what) + " cannot be read"};
}

}  // namespace

std::string encode(const NodeBrief& brief) {
  return base::json_text(nlohmann::json{{"job", brief.caller.gang.job_id},
                                        {"attempt", brief.caller.gang.attempt},
                                        {"key", base::to_hex(brief.key)},
                                        {"hosts", brief.hosts},
                                        {"port", brief.port},
                                        {"sharing", static_cast<int>(brief.sharing)},
                                        {"folder", brief.folder},
                                        {"mark", brief.mark},
                                        {"nonce", brief.nonce},
                                        {"linger_ms", brief.linger.count()}}) +
         "\n";
}

Result<NodeBrief> decode_node_brief(std::string_view text) {
  try {
    const auto json = base::parse_json_or_throw(text);
    NodeBrief brief;
    brief.caller.gang.job_id = json.at("job");
    brief.caller.gang.attempt = json.at("attempt");
    brief.hosts = json.at("hosts").get<std::vector<std::string>>();
    brief.port = json.at("port");
    const int sharing = json.at("sharing");
    if (sharing < 0 || sharing > static_cast<int>(Sharing::kNo)) {
      return unreadable("the brief of muster-node");
    }
    brief.sharing = static_cast<Sharing>(sharing);
    brief.folder = json.at("folder");
    brief.mark = json.at("mark");
    brief.nonce = json.at("nonce");
    brief.linger = std::chrono::milliseconds(json.at("linger_ms").get<int64_t>());
    MUSTER_TRY(brief.key, rsh::read_key(json.at("key").get<std::string>() + "\n"));
    return brief;
  } catch (const nlohmann::json::exception&) {
    return unreadable("the brief of muster-node");
  }
}

std::string encode(const CallbackAddress& address) {
  return base::joined(address.hosts, ",") + " " + std::to_string(address.port) + "\n";
}

Result<CallbackAddress> decode_callback(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return unreadable("the callback address of the server");
  const auto port = base::number_of<uint16_t>(text.substr(blank + 1));
  CallbackAddress address{.hosts = base::split(text.substr(0, blank), ',')};
  if (!port || *port == 0 || address.hosts.empty()) {
    return unreadable("the callback address of the server");
  }
  address.port = *port;
  return address;
}

// --- the server's end

namespace {

constexpr size_t kLongestFile = 64 << 10;
constexpr size_t kNonceBytes = 16;

uint16_t kept_port(const fs::path& file) {
  const auto text = base::read_file(file, kLongestFile);
  const auto address = text ? decode_callback(*text) : Result<CallbackAddress>(text.error());
  return address ? address->port : 0;
}

Result<std::string> kept_nonce(const fs::path& file) {
  if (const auto text = base::read_file(file, kLongestFile); text && !text->empty()) {
    return text->substr(0, text->find('\n'));
  }
  base::SystemRandom random;
  std::string nonce = base::to_hex(random.bytes<kNonceBytes>());
  MUSTER_CHECK(base::write_file(file, nonce + "\n"));
  return nonce;
}

/// A kept port may be in use by now: then any free port will do. A port of the options must be
/// free.
Result<std::unique_ptr<NodeHub>> open_hub(base::EventLoop& loop, HubOptions hub,
                                          const CallbackOptions& options, uint16_t kept) {
  hub.bind = hub.bind.empty() ? "0.0.0.0" : hub.bind;
  hub.port = options.port != 0 ? options.port : kept;
  auto opened = NodeHub::open(loop, hub);
  const bool may_move = options.port == 0 && kept != 0 && !opened;
  if (!may_move) return opened;
  base::log_warning("port " + std::to_string(kept) +
                    ", at which running muster-nodes expect the server, is in use; the server uses "
                    "another one, which nodes that do not share its folder cannot find. Choose a "
                    "fixed port with " +
                    options.flag + " :PORT");
  hub.port = 0;
  return NodeHub::open(loop, hub);
}

}  // namespace

std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
    hosts.emplace_back(name.data());
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return hosts;
  const size_t names = hosts.size();
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) == nullptr) continue;
    hosts.emplace_back(text.data());
  }
  ::freeifaddrs(all);
  if (hosts.size() == names) hosts.emplace_back("127.0.0.1");
  return hosts;
}

Result<CallbackSite> open_callback_site(base::EventLoop& loop, const CallbackOptions& options,
                                        HubOptions hub) {
  MUSTER_CHECK(base::make_private_folder(options.folder));
  const fs::path file = options.folder / kCallbackFile;
  CallbackSite site{.hosts = options.hosts.empty() ? own_hosts() : options.hosts,
                    .mark = ".shared-" + options.owner};
  hub.bind = options.bind;
  MUSTER_TRY(site.hub, open_hub(loop, std::move(hub), options, kept_port(file)));
  MUSTER_CHECK(base::write_file(
      file, encode(CallbackAddress{.hosts = site.hosts, .port = site.hub->port()})));
  MUSTER_TRY(site.nonce, kept_nonce(options.folder / site.mark));
  return site;
}

}  // namespace muster::engine::node
