#include "engine/slurm/node_brief.h"

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

Error unreadable(const char* what) {
  return {.code = ErrorCode::kInvalid, .what = std::string(what) + " cannot be read"};
}

}  // namespace

std::string encode(const NodeBrief& brief) {
  return nlohmann::json{{"job", brief.caller.gang.job_id},
                        {"attempt", brief.caller.gang.attempt},
                        {"key", base::to_hex(brief.key)},
                        {"hosts", brief.hosts},
                        {"port", brief.port},
                        {"sharing", static_cast<int>(brief.sharing)},
                        {"folder", brief.folder},
                        {"mark", brief.mark},
                        {"nonce", brief.nonce},
                        {"linger_ms", brief.linger.count()}}
             .dump() +
         "\n";
}

Result<NodeBrief> decode_node_brief(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    NodeBrief brief;
    brief.caller.gang.job_id = json.at("job");
    brief.caller.gang.attempt = json.at("attempt");
    brief.hosts = json.at("hosts").get<std::vector<std::string>>();
    brief.port = json.at("port");
    const int sharing = json.at("sharing");
    if (sharing < 0 || sharing > static_cast<int>(Sharing::kNo)) {
      return unreadable("what muster-node was given to read");
    }
    brief.sharing = static_cast<Sharing>(sharing);
    brief.folder = json.at("folder");
    brief.mark = json.at("mark");
    brief.nonce = json.at("nonce");
    brief.linger = std::chrono::milliseconds(json.at("linger_ms").get<int64_t>());
    MUSTER_TRY(brief.key, rsh::read_key(json.at("key").get<std::string>() + "\n"));
    return brief;
  } catch (const nlohmann::json::exception&) {
    return unreadable("what muster-node was given to read");
  }
}

std::string encode(const CallbackAddress& address) {
  return base::joined(address.hosts, ",") + " " + std::to_string(address.port) + "\n";
}

Result<CallbackAddress> decode_callback(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return unreadable("where the server is called back");
  const auto port = base::number_of<uint16_t>(text.substr(blank + 1));
  CallbackAddress address{.hosts = base::split(text.substr(0, blank), ',')};
  if (!port || *port == 0 || address.hosts.empty()) {
    return unreadable("where the server is called back");
  }
  address.port = *port;
  return address;
}

}  // namespace muster::engine::slurm
