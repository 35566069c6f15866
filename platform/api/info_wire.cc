#include "api/wire.h"
#include "record/field.h"

namespace muster::api {

using record::field;
using record::Told;

// Fields of a newer server are ignored: this answer has its version.
const record::Table& table_of(const ServerInfo*) {
  static const record::Table table =
      record::table<ServerInfo>(
          "ServerInfo",
          {field<&ServerInfo::version>("version", {.need = record::Need::kRequired}),
           field<&ServerInfo::pid>("pid", {.help = "0 unless the caller is an admin of the server.",
                                           .need = record::Need::kRequired,
                                           .least = 0}),
           field<&ServerInfo::state_folder>(
               "state_folder", {.help = "Empty unless the caller is an admin of the server.",
                                .told = Told::kAlways}),
           field<&ServerInfo::engine>(
               "engine", {.help = "Where its tasks run: `process`, `container` or `slurm`."}),
           field<&ServerInfo::address>(
               "address",
               {.help = "HOST:PORT where other machines reach it. Absent: it serves only "
                        "a unix socket, or the caller is not an admin of the server."}),
           field<&ServerInfo::config_changed>(
               "config_changed",
               {.help = "Its configuration file has been written since it was "
                        "read. False unless the caller is an admin of the server.",
                .told = Told::kAlways})})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

std::string info_to_json(const ServerInfo& info) {
  return record::to_json(info);
}
Result<ServerInfo> info_from_json(std::string_view text) {
  return record::from_json<ServerInfo>(text, "server's description");
}

}  // namespace muster::api
