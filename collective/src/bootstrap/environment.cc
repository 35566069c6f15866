#include "bootstrap/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace muster::collective {
namespace {

// The pairs of variables in which launchers publish rank and size; Muster's own pair comes first.
enum class Launcher { kMuster, kOpenMpi, kHydra, kSlurm, kTorchrun };

struct PlaceVariables {
  Launcher launcher;
  const char* rank;
  const char* size;
  const char* local_size;  // number of ranks on this host; null: see is_local()
};
constexpr std::array<PlaceVariables, 5> kLaunchers = {{
    {Launcher::kMuster, "MUSTER_RANK", "MUSTER_WORLD_SIZE", nullptr},
    {Launcher::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::kHydra, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {Launcher::kSlurm, "SLURM_PROCID", "SLURM_NTASKS", nullptr},
    {Launcher::kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
}};

Error bad_variable(const std::string& name, const std::string& value, const std::string& expected) {
  return {ErrorCode::kConfiguration, name + " is '" + value + "', not " + expected};
}

template <typename T>
std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

Result<int> whole_number(const std::string& name, const std::string& text) {
  const std::optional<int> value = parse_number<int>(text);
  if (!value || *value < 0) return bad_variable(name, text, "a whole number");
  return *value;
}

Status read_seconds(const Lookup& variable, const char* name,
                    std::optional<std::chrono::milliseconds>& into) {
  const std::optional<std::string> text = variable(name);
  if (into || !text) return {};
  const std::optional<double> seconds = parse_number<double>(*text);
  // The upper limit of a hundred days keeps the number of milliseconds in range. NaN fails the test
  // too.
  if (!seconds || !(*seconds >= 0.001 && *seconds <= 8'640'000)) {
    return bad_variable(name, *text, "a number of seconds above 0");
  }
  into = std::chrono::milliseconds(static_cast<long>(*seconds * 1000));
  return {};
}

Status read_number(const Lookup& variable, const char* name, std::optional<int>& into) {
  const std::optional<std::string> text = variable(name);
  if (into || !text) return {};
  const Result<int> value = whole_number(name, *text);
  if (!value) return value.error();
  into = *value;
  return {};
}

Status read_choices(const Lookup& variable, Options& options) {
  const auto read = [&](std::string& into, const char* name) {
    if (into.empty()) into = variable(name).value_or("");
  };
  read(options.transport, "MUSTER_COLLECTIVE_TRANSPORT");
  read(options.algorithm, "MUSTER_COLLECTIVE_ALGORITHM");
  read(options.host_id, "MUSTER_COLLECTIVE_HOST_ID");
  Status read_streams = read_number(variable, "MUSTER_COLLECTIVE_STREAMS", options.streams);
  if (!read_streams) return read_streams;
  const std::optional<std::string> arena = variable("MUSTER_COLLECTIVE_ARENA_BYTES");
  if (arena && !options.arena_bytes) {
    options.arena_bytes = parse_number<std::uint64_t>(*arena);
    if (!options.arena_bytes) {
      return bad_variable("MUSTER_COLLECTIVE_ARENA_BYTES", *arena, "a whole number of bytes");
    }
  }
  return check_choices(options);
}

// Sets rank and size from the first launcher that publishes both. Returns the variables of that
// launcher, or nullopt if there is no launcher.
Result<std::optional<PlaceVariables>> read_place(const Lookup& variable, Options& options) {
  for (const PlaceVariables& launcher : kLaunchers) {
    const char* const rank_name = launcher.rank;
    const char* const size_name = launcher.size;
    const std::optional<std::string> rank = variable(rank_name);
    const std::optional<std::string> size = variable(size_name);
    if (rank_name == kLaunchers[0].rank && rank.has_value() != size.has_value()) {
      return Error{ErrorCode::kConfiguration,
                   std::string(rank ? rank_name : size_name) + " is set, but " +
                       (rank ? size_name : rank_name) + " is not",
                   "set both or neither"};
    }
    if (!rank || !size) continue;
    const Result<int> rank_value = whole_number(rank_name, *rank);
    if (!rank_value) return rank_value.error();
    const Result<int> size_value = whole_number(size_name, *size);
    if (!size_value) return size_value.error();
    if (!options.rank) options.rank = *rank_value;
    if (!options.size) options.size = *size_value;
    return std::optional<PlaceVariables>(launcher);
  }
  return std::optional<PlaceVariables>();
}

Status check_own_rank(const Options& options) {
  if (*options.size >= 1 && *options.rank >= 0 && *options.rank < *options.size) return {};
  return Error{ErrorCode::kConfiguration,
               "rank " + std::to_string(*options.rank) + " is not in a world of " +
                   std::to_string(*options.size),
               "ranks go from 0 to size - 1"};
}

// Whether the launcher started all of its ranks on this host.
bool is_local(const Lookup& variable, const PlaceVariables& launcher) {
  if (launcher.launcher == Launcher::kSlurm) {
    // The nodes of the step, if Slurm publishes them; else the nodes of the job, of which the step
    // may use only some.
    const std::optional<std::string> nodes = variable("SLURM_STEP_NUM_NODES");
    return (nodes ? nodes : variable("SLURM_NNODES")) == "1";
  }
  if (launcher.local_size == nullptr) return false;
  const std::optional<std::string> local = variable(launcher.local_size);
  return local && local == variable(launcher.size);
}

std::optional<std::string> run_of(const Lookup& variable, Launcher launcher, int process) {
  switch (launcher) {
    case Launcher::kOpenMpi:
      return run_of_mpirun(variable);
    case Launcher::kHydra:
      return run_of_hydra(process);
    case Launcher::kSlurm:
      return run_of_slurm(variable);
    case Launcher::kTorchrun:
      return run_of_torchrun(variable, process);
    case Launcher::kMuster:
      break;
  }
  return std::nullopt;
}

std::string evidence_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::kOpenMpi:
      return "PMIX_NAMESPACE and PMIX_SERVER_URI are not set";
    case Launcher::kHydra:
      return "this process has no parent hydra_pmi_proxy";
    case Launcher::kSlurm:
      return "SLURM_JOB_ID and SLURM_STEP_ID are not set";
    case Launcher::kTorchrun:
      return "MASTER_PORT is not set";
    case Launcher::kMuster:
      break;
  }
  return "";
}

// The master's host and the port after the master's port, which torch's own store uses.
std::optional<std::string> endpoint_of_torchrun(const Lookup& variable) {
  const std::optional<std::string> host = variable("MASTER_ADDR");
  const std::optional<int> port = parse_number<int>(variable("MASTER_PORT").value_or(""));
  if (!host || host->empty() || !port || *port < 1 || *port >= 65'535) return std::nullopt;
  const bool is_v6 = host->find(':') != std::string::npos;
  return (is_v6 ? "[" + *host + "]" : *host) + ":" + std::to_string(*port + 1);
}

Status read_local_run(const Lookup& variable, const PlaceVariables& launcher, int process,
                      Options& options) {
  const std::optional<std::string> run = run_of(variable, launcher.launcher, process);
  if (!run) {
    return Error{ErrorCode::kConfiguration,
                 "this launcher does not identify its run to the ranks (" +
                     evidence_of(launcher.launcher) + ")",
                 "set MUSTER_RENDEZVOUS=host:port and MUSTER_RENDEZVOUS_KEY on all ranks"};
  }
  options.rendezvous_file = rendezvous_file_of(*run, variable);
  return {};
}

Error needs_key(const std::string& rendezvous) {
  return {
      ErrorCode::kConfiguration, "the rendezvous " + rendezvous + " has no key",
      "set MUSTER_RENDEZVOUS_KEY on all ranks to the same secret, as from: openssl rand -hex 32"};
}

Status read_rendezvous(const Lookup& variable, const std::optional<PlaceVariables>& launcher,
                       int process, Options& options) {
  if (!options.rendezvous_file.empty()) return {};
  if (options.rendezvous.empty()) {
    options.rendezvous = variable("MUSTER_RENDEZVOUS").value_or("");
  }
  if (options.key.empty()) options.key = variable("MUSTER_RENDEZVOUS_KEY").value_or("");
  if (!options.rendezvous.empty()) {
    return options.key.empty() ? Status(needs_key(options.rendezvous)) : Status();
  }
  if (launcher && is_local(variable, *launcher)) {
    return read_local_run(variable, *launcher, process, options);
  }
  if (launcher && launcher->launcher == Launcher::kTorchrun) {
    if (const std::optional<std::string> endpoint = endpoint_of_torchrun(variable)) {
      options.rendezvous = *endpoint;
      return options.key.empty() ? Status(needs_key(options.rendezvous)) : Status();
    }
  }
  return Error{ErrorCode::kConfiguration,
               std::string(launcher ? launcher->size : "the program") + " sets a world of " +
                   std::to_string(*options.size) + " ranks, but no rendezvous is set",
               "set MUSTER_RENDEZVOUS=host:port (rank 0 listens there) and MUSTER_RENDEZVOUS_KEY "
               "on all ranks"};
}

}  // namespace

Result<Options> bootstrap_from(const Lookup& variable, Options given, int process) {
  Options options = std::move(given);
  for (const auto& [name, into] : {std::pair{"MUSTER_COLLECTIVE_TIMEOUT", &options.timeout},
                                   std::pair{"MUSTER_COLLECTIVE_SILENCE", &options.silence}}) {
    if (Status read = read_seconds(variable, name, *into); !read) return read.error();
  }
  if (Status read = read_choices(variable, options); !read) return read.error();
  std::optional<PlaceVariables> launcher;
  if (!options.rank || !options.size) {
    Result<std::optional<PlaceVariables>> read = read_place(variable, options);
    if (!read) return read.error();
    launcher = *read;
  }
  if (!options.rank) options.rank = 0;
  if (!options.size) options.size = 1;
  if (Status checked = check_own_rank(options); !checked) return checked.error();
  if (*options.size == 1) return options;
  if (Status read = read_rendezvous(variable, launcher, process, options); !read) {
    return read.error();
  }
  return options;
}

Result<Options> bootstrap_from_environment(Options given) {
  const Lookup variable = [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return bootstrap_from(variable, std::move(given), ::getpid());
}

namespace {

constexpr std::string_view kTransports[] = {"auto", "shm", "tcp", "mpi", "nccl"};
constexpr std::string_view kAlgorithms[] = {"auto", "direct", "ring", "rabenseifner", "doubling"};
constexpr int kMostStreams = 16;

Status check_name(const std::string& what, const std::string& variable, const std::string& value,
                  std::span<const std::string_view> known) {
  if (value.empty() || std::ranges::find(known, value) != known.end()) return {};
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return Error{ErrorCode::kConfiguration,
               "unknown " + what + " '" + value + "': expected one of " + names,
               "set " + variable + " to one of these names, or unset it"};
}

}  // namespace

Status check_choices(const Options& options) {
  Status checked =
      check_name("transport", "MUSTER_COLLECTIVE_TRANSPORT", options.transport, kTransports);
  if (!checked) return checked;
  checked = check_name("algorithm", "MUSTER_COLLECTIVE_ALGORITHM", options.algorithm, kAlgorithms);
  if (!checked) return checked;
  if (options.streams && (*options.streams < 1 || *options.streams > kMostStreams)) {
    return Error{ErrorCode::kConfiguration,
                 "invalid number of streams " + std::to_string(*options.streams) +
                     ": expected 1 to " + std::to_string(kMostStreams),
                 "set MUSTER_COLLECTIVE_STREAMS to a number in this range, or unset it"};
  }
  return {};
}

}  // namespace muster::collective
