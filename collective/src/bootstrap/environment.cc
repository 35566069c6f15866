#include "bootstrap/environment.h"

#include <array>
#include <charconv>
#include <cstdlib>

namespace muster::collective {
namespace {

// The pairs by which launchers tell a process its place, ours first.
struct PlaceVariables {
  const char* rank;
  const char* size;
};
constexpr std::array<PlaceVariables, 5> kLaunchers = {{
    {"MUSTER_RANK", "MUSTER_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
    {"RANK", "WORLD_SIZE"},
}};

Error wrong(const std::string& name, const std::string& value, const std::string& expected) {
  return {ErrorCode::kConfiguration, name + " is '" + value + "', not " + expected};
}

template <typename T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

Result<int> whole_number(const std::string& name, const std::string& text) {
  const std::optional<int> value = parse<int>(text);
  if (!value || *value < 0) return wrong(name, text, "a whole number");
  return *value;
}

Status read_timeout(const Lookup& variable, Options& options) {
  const std::optional<std::string> text = variable("MUSTER_COLLECTIVE_TIMEOUT");
  if (options.timeout || !text) return {};
  const std::optional<double> seconds = parse<double>(*text);
  // The upper bound, a hundred days, keeps NaN and what does not fit in milliseconds out.
  if (!seconds || !(*seconds >= 0.001 && *seconds <= 8'640'000)) {
    return wrong("MUSTER_COLLECTIVE_TIMEOUT", *text, "a number of seconds above 0");
  }
  options.timeout = std::chrono::milliseconds(static_cast<long>(*seconds * 1000));
  return {};
}

// Fills in rank and size from the first launcher that names both. Returns the name of its variable
// for the size, or nothing where there was none.
Result<std::optional<std::string>> read_place(const Lookup& variable, Options& options) {
  for (const auto& [rank_name, size_name] : kLaunchers) {
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
    return std::optional<std::string>(size_name);
  }
  return std::optional<std::string>();
}

Status check_place(const Options& options) {
  if (*options.size >= 1 && *options.rank >= 0 && *options.rank < *options.size) return {};
  return Error{ErrorCode::kConfiguration,
               "rank " + std::to_string(*options.rank) + " is not in a world of " +
                   std::to_string(*options.size),
               "ranks go from 0 to size - 1"};
}

// All ranks of an mpirun on this host: their number here is their number at all.
bool is_local_mpirun(const Lookup& variable) {
  const std::optional<std::string> local = variable("OMPI_COMM_WORLD_LOCAL_SIZE");
  return local && local == variable("OMPI_COMM_WORLD_SIZE");
}

Status read_rendezvous(const Lookup& variable, const std::string& source, Options& options) {
  if (!options.rendezvous_file.empty()) return {};
  if (options.rendezvous.empty()) {
    options.rendezvous = variable("MUSTER_RENDEZVOUS").value_or("");
  }
  if (!options.rendezvous.empty()) {
    if (options.key.empty()) options.key = variable("MUSTER_RENDEZVOUS_KEY").value_or("");
    if (!options.key.empty()) return {};
    return Error{ErrorCode::kConfiguration,
                 "the rendezvous " + options.rendezvous + " needs a key, and has none",
                 "set MUSTER_RENDEZVOUS_KEY on all ranks to the same secret, as from: openssl rand "
                 "-hex 32"};
  }
  if (is_local_mpirun(variable)) {
    Result<std::string> path = rendezvous_file_of(variable);
    if (!path) return path.error();
    options.rendezvous_file = *std::move(path);
    return {};
  }
  return Error{ErrorCode::kConfiguration,
               source + " says that there are " + std::to_string(*options.size) +
                   " ranks, but not where they meet",
               "set MUSTER_RENDEZVOUS=host:port (rank 0 listens there) and MUSTER_RENDEZVOUS_KEY "
               "on all ranks"};
}

}  // namespace

Result<Options> bootstrap_from(const Lookup& variable, Options given) {
  Options options = std::move(given);
  if (Status read = read_timeout(variable, options); !read) return read.error();
  std::string source = "the program";
  if (!options.rank || !options.size) {
    Result<std::optional<std::string>> launcher = read_place(variable, options);
    if (!launcher) return launcher.error();
    if (*launcher) source = **launcher;
  }
  if (!options.rank) options.rank = 0;
  if (!options.size) options.size = 1;
  if (Status checked = check_place(options); !checked) return checked.error();
  if (*options.size == 1) return options;
  if (Status read = read_rendezvous(variable, source, options); !read) return read.error();
  return options;
}

Result<Options> bootstrap_from_environment(Options given) {
  const Lookup variable = [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return bootstrap_from(variable, std::move(given));
}

}  // namespace muster::collective
