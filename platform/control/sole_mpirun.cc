#include "control/sole_mpirun.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "control/is_one_of.h"
#include "launch/plan_task.h"

namespace muster::control {

namespace {

using Argv = std::vector<std::string>;

// What a shell does more with than to run one command.
constexpr std::string_view kShellSyntax = "|&;<>()$`\\*?[]#~!{}\n'\"";

constexpr std::array<std::string_view, 4> kShells{"sh", "bash", "dash", "zsh"};

// With one dash or two: Open MPI's, Hydra's and Intel's.
constexpr std::array<std::string_view, 22> kPlacing{
    "host",       "H",       "hosts",       "hostlist",      "machine",          "rankfile",
    "rf",         "N",       "npernode",    "npersocket",    "pernode",          "ppn",
    "perhost",    "rr",      "grr",         "oversubscribe", "default-hostfile", "app",
    "configfile", "nolocal", "loadbalance", "cpus-per-proc"};
// Those that lead to a file of hosts, which may be the job's own.
constexpr std::array<std::string_view, 3> kHostfileOptions{"hostfile", "machinefile", "f"};
constexpr std::array<std::string_view, 5> kRanks{"np", "n", "c", "nrs", "nproc"};

// The job's own, by each of its names.
constexpr std::array<std::string_view, 3> kOurHostfiles{
    "/generated/hostfile", "/generated/hostfile.intel", "/etc/mpi/hostfile"};

// Variables that say where ranks go, or what takes the place of the job's own settings.
constexpr std::array<std::string_view, 6> kPlacingVariables{"OMPI_MCA_rmaps",
                                                            "PRTE_MCA_rmaps",
                                                            "OMPI_MCA_orte_default_hostfile",
                                                            "PRTE_MCA_prte_default_hostfile",
                                                            "HYDRA_",
                                                            "I_MPI_"};

std::string_view file_name_of(std::string_view program) {
  return program.substr(program.rfind('/') + 1);
}

/// mpirun.openmpi, mpiexec.hydra: as distributions have them.
bool is_mpirun(std::string_view program) {
  const std::string_view name = file_name_of(program);
  constexpr std::array<std::string_view, 4> kNames{"mpirun", "mpiexec", "orterun", "prterun"};
  return is_one_of(name.substr(0, name.find('.')), kNames);
}

/// The option without its dashes; empty: the word is none.
std::string_view option_in(std::string_view word) {
  if (!word.starts_with('-')) return {};
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

Argv split(std::string_view text) {
  Argv words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.empty()) return words;
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    words.emplace_back(word);
    text.remove_prefix(word.size());
  }
}

/// The words of `sh -c 'exec mpirun ...'`, where a shell would run just that.
Argv without_shell(Argv argv) {
  const bool is_shell =
      argv.size() == 3 && is_one_of(file_name_of(argv[0]), kShells) && argv[1] == "-c";
  if (!is_shell || argv[2].find_first_of(kShellSyntax) != std::string::npos) return argv;
  Argv words = split(argv[2]);
  if (!words.empty() && words.front() == "exec") words.erase(words.begin());
  return words;
}

bool says_where(const Argv& argv, size_t at) {
  const std::string_view option = option_in(argv[at]);
  if (option.empty()) return false;
  const std::string_view value = at + 1 < argv.size() ? argv[at + 1] : std::string_view();
  if (is_one_of(option, kHostfileOptions)) return !is_one_of(value, kOurHostfiles);
  if (option == "map-by" || option == "rmaps") {
    return value.find("ppr") != std::string_view::npos ||
           value.find_first_of(":=") != std::string_view::npos;
  }
  return is_one_of(option.substr(0, option.find('=')), kPlacing) || value.starts_with("rmaps");
}

bool sets_where(const std::map<std::string, std::string>& environment) {
  return std::any_of(environment.begin(), environment.end(), [](const auto& variable) {
    return std::any_of(kPlacingVariables.begin(), kPlacingVariables.end(),
                       [&](std::string_view name) { return variable.first.starts_with(name); });
  });
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Of words in front of the program and behind it alike: whatever looks as if it said so twice is
/// taken to say nothing.
std::optional<int> ranks_in(const Argv& argv) {
  std::optional<int> ranks;
  for (size_t i = 1; i + 1 < argv.size(); ++i) {
    if (!is_one_of(option_in(argv[i]), kRanks)) continue;
    if (ranks) return std::nullopt;
    ranks = number_in(argv[i + 1]);
    if (!ranks) return std::nullopt;
  }
  return ranks;
}

}  // namespace

std::optional<SoleMpirun> sole_mpirun(const job::JobSpec& spec) {
  if (spec.kind != job::Kind::kMpi || !spec.replaces_entrypoint) return std::nullopt;
  const Argv argv = without_shell(launch::program_of(spec, job::Role::kLauncher, {}));
  if (argv.empty() || !is_mpirun(argv.front())) return std::nullopt;
  SoleMpirun found{.ranks = ranks_in(argv)};
  // Several programs in one world: mpirun -np 1 a : -np 3 b.
  const bool is_several = std::find(argv.begin(), argv.end(), ":") != argv.end();
  if (is_several) found.ranks.reset();
  found.places_ranks =
      is_several || sets_where(spec.environment) || sets_where(spec.leader.environment);
  for (size_t i = 1; i < argv.size(); ++i) found.places_ranks |= says_where(argv, i);
  return found;
}

}  // namespace muster::control
