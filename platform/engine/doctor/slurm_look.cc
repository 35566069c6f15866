// look_at_slurm(): collects the facts about Slurm for `muster doctor`.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/event_loop.h"
#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "engine/doctor/doctor.h"
#include "engine/node/brief.h"
#include "engine/slurm/listing.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/slurm_programs.h"

namespace muster::engine::doctor {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string value_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& line : environment) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return "";
}

/// The places at which Slurm's programs look for slurm.conf, in order.
std::string find_slurm_conf(const SlurmPlaces& places) {
  const std::string named = value_in(places.environment, "SLURM_CONF");
  if (!named.empty()) return is_there(named) ? named : "";
  for (const char* path : {"etc/slurm/slurm.conf", "etc/slurm-llnl/slurm.conf",
                           "usr/local/etc/slurm.conf", "run/slurm/conf/slurm.conf"}) {
    if (is_there(places.root / path)) return (places.root / path).string();
  }
  return "";
}

Answers ask_programs(const SlurmPlaces& places) {
  std::vector<Question> questions;
  for (const char* name : {"sbatch", "squeue", "scancel", "sinfo", "scontrol", "srun"}) {
    questions.push_back({name, {name, "--version"}});
  }
  Question nodes{"nodes", slurm::sinfo_arguments()};
  nodes.argv.insert(nodes.argv.begin(), "sinfo");
  questions.push_back(std::move(nodes));
  questions.push_back({"ping", {"scontrol", "ping"}});
  questions.push_back({"config", {"scontrol", "show", "config"}});
  questions.push_back({"mpi", {"srun", "--mpi=list"}});
  questions.push_back({"munge", {"munge", "--no-input"}});
  questions.push_back({"dbd", {"sacctmgr", "--noheader", "show", "cluster", "format=cluster"}});
  Answers answers = ask_all(questions, slurm::environment_for_asking(places.environment));
  // The output is a credential, so it is discarded.
  answers["munge"].output.clear();
  return answers;
}

/// The socket of slurmrestd that a server would use; else one that this user cannot connect to.
struct RestSocketFound {
  fs::path path;  ///< empty: no socket
  bool is_open = false;
};
RestSocketFound socket_of_rest(const SlurmPlaces& places) {
  fs::path closed;
  const auto variable = [&places](const std::string& name) -> std::optional<std::string> {
    const std::string value = value_in(places.environment, name);
    return value.empty() ? std::nullopt : std::optional(value);
  };
  for (const fs::path& usual : slurm::usual_rest_sockets(variable)) {
    const fs::path socket = places.root / usual.relative_path();
    if (slurm::can_connect_to(socket)) return {socket, true};
    if (closed.empty() && is_there(socket)) closed = socket;
  }
  return {closed, false};
}

/// The configured slurmrestd, or one that was found.
std::optional<RestFacts> look_for_rest(const SlurmPlaces& places) {
  const bool is_sought = places.options.rest == slurm::kFindRest;
  RestFacts facts{.place = is_sought ? "" : places.options.rest,
                  .is_configured = !is_sought && !places.options.rest.empty()};
  if (facts.place.empty()) {
    const RestSocketFound socket = socket_of_rest(places);
    if (!socket.path.empty()) facts.place = "unix://" + socket.path.string();
    // As in open_client(): only sbatch supports options of sbatch.
    facts.is_configured = is_sought && socket.is_open && places.options.sbatch_options.empty();
  }
  if (facts.place.empty()) return std::nullopt;
  slurm::SlurmEngineOptions options = places.options;
  options.rest = facts.place;
  base::EventLoop loop;
  auto client = slurm::open_client(loop, options);
  if (!client) {
    facts.answer = std::move(client).error();
    return facts;
  }
  facts.answer =
      base::Error{.code = base::ErrorCode::kTimeout, .what = "it did not answer in time"};
  (*client)->facts([&](base::Result<slurm::ClientFacts> answer) {
    facts.answer = std::move(answer);
    loop.stop();
  });
  const auto timer = loop.after(kPatience, [&loop] { loop.stop(); });
  loop.run();
  client->reset();
  return facts;
}

/// Binds the port for a moment. nullopt: the port is free.
std::optional<base::Error> cannot_bind(const std::string& bind, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = htons(port);
  const bool is_six = bind.find(':') != std::string::npos;
  const int read = is_six ? ::inet_pton(AF_INET6, bind.c_str(), &address6.sin6_addr)
                          : ::inet_pton(AF_INET, bind.c_str(), &address.sin_addr);
  const std::string place = bind + ":" + std::to_string(port);
  if (read != 1) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "'" + bind + "' is not an address to listen on"};
  }
  const base::UniqueFd socket(::socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const auto* const where = is_six ? reinterpret_cast<const sockaddr*>(&address6)
                                   : reinterpret_cast<const sockaddr*>(&address);
  const socklen_t size = is_six ? sizeof(address6) : sizeof(address);
  if (::bind(socket.get(), where, size) == 0 && ::listen(socket.get(), 1) == 0) return std::nullopt;
  return base::system_error("cannot listen at " + place, errno);
}

std::string file_system_of(fs::path folder) {
  while (!is_there(folder) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0) return "";
  // From linux/magic.h, and the numbers of file systems outside the kernel.
  static constexpr std::array<std::pair<uint32_t, const char*>, 18> kTypes{
      {{0x6969, "nfs"},
       {0x0BD00BD0, "lustre"},
       {0x19830326, "beegfs"},
       {0x47504653, "gpfs"},
       {0x00C36400, "ceph"},
       {0xFF534D42, "cifs"},
       {0xFE534D42, "smb2"},
       {0x5346414F, "afs"},
       {0x20030528, "orangefs"},
       {0x7461636F, "ocfs2"},
       {0x01161970, "gfs2"},
       {0x01021997, "9p"},
       {0xEF53, "ext4"},
       {0x58465342, "xfs"},
       {0x9123683E, "btrfs"},
       {0x01021994, "tmpfs"},
       {0x794C7630, "overlayfs"},
       {0x2FC12FC1, "zfs"}}};
  for (const auto& [magic, name] : kTypes) {
    if (static_cast<uint32_t>(status.f_type) == magic) return name;
  }
  return "";
}

/// The configured port, else the port that a server of this folder chose before.
uint16_t port_of(const SlurmPlaces& places) {
  if (places.options.callback_port != 0) return places.options.callback_port;
  const auto text = base::read_file(places.jobs_folder / node::kCallbackFile, 64 << 10);
  if (!text) return 0;
  const auto kept = node::decode_callback(*text);
  return kept ? kept->port : 0;
}

}  // namespace

SlurmFacts look_at_slurm(const SlurmPlaces& places) {
  SlurmFacts facts;
  std::optional<RestFacts> rest;
  std::thread asking([&] { rest = look_for_rest(places); });
  facts.answers = ask_programs(places);
  asking.join();
  facts.rest = std::move(rest);
  facts.config_file = find_slurm_conf(places);
  facts.programs = places.options.programs;
  facts.programs_on_nodes = places.options.programs_on_nodes;
  facts.has_node_program = is_there(facts.programs / "muster-node");
  facts.bind = places.options.callback_bind;
  facts.port = port_of(places);
  facts.server_runs = places.server_runs;
  // A running server has the port already. If another program has it, the server's log shows that.
  if (!places.server_runs) facts.cannot_bind = cannot_bind(facts.bind, facts.port);
  facts.hosts =
      places.options.callback_hosts.empty() ? node::own_hosts() : places.options.callback_hosts;
  facts.sharing = places.options.sharing;
  facts.folder = places.jobs_folder;
  facts.file_system = file_system_of(places.jobs_folder);
  return facts;
}

}  // namespace muster::engine::doctor
