#include "api/fields.h"
#include "api/wire.h"

namespace muster::api {

std::string info_to_json(const ServerInfo& info) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("version").text(info.version);
  json.key("pid").number(info.pid);
  json.key("state_folder").text(info.state_folder);
  if (!info.engine.empty()) json.key("engine").text(info.engine);
  if (!info.address.empty()) json.key("address").text(info.address);
  json.key("config_changed").flag(info.config_changed);
  json.close('}');
  return text;
}

// Fields of a newer server are no fault here: this is the answer that tells its version.
Result<ServerInfo> info_from_json(std::string_view text) {
  ServerInfo info;
  MUSTER_CHECK(read_document(
      text, "server's description",
      [&](Fields& fields) {
        fields.read("version", info.version, Need::kRequired);
        fields.read("pid", info.pid, Need::kRequired);
        fields.read("state_folder", info.state_folder);
        fields.read("engine", info.engine);
        fields.read("address", info.address);
        fields.read("config_changed", info.config_changed);
      },
      Unknown::kIgnored));
  return info;
}

}  // namespace muster::api
