#include "engine/slurm/callback_site.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/slurm/node_brief.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Result;

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

Result<std::unique_ptr<NodeHub>> open_hub(base::EventLoop& loop, HubOptions hub, uint16_t wished,
                                          uint16_t kept) {
  hub.bind = hub.bind.empty() ? "0.0.0.0" : hub.bind;
  hub.port = wished != 0 ? wished : kept;
  auto opened = NodeHub::open(loop, hub);
  const bool may_move = wished == 0 && kept != 0 && !opened;
  if (!may_move) return opened;
  base::log_warning(
      "the port " + std::to_string(kept) +
      " that nodes of Slurm call back is taken: another is used, where those that do "
      "not share the server's folder do not find it. Name one: --slurm-callback :PORT");
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

Result<CallbackSite> open_callback_site(base::EventLoop& loop, const SlurmEngineOptions& options,
                                        HubOptions hub) {
  MUSTER_CHECK(base::make_private_folder(options.folder));
  const fs::path file = options.folder / kCallbackFile;
  CallbackSite site{.hosts = options.callback_hosts.empty() ? own_hosts() : options.callback_hosts,
                    .mark = ".shared-" + options.owner};
  hub.bind = options.callback_bind;
  MUSTER_TRY(site.hub, open_hub(loop, std::move(hub), options.callback_port, kept_port(file)));
  MUSTER_CHECK(base::write_file(
      file, encode(CallbackAddress{.hosts = site.hosts, .port = site.hub->port()})));
  MUSTER_TRY(site.nonce, kept_nonce(options.folder / site.mark));
  return site;
}

}  // namespace muster::engine::slurm
