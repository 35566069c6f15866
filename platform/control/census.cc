#include "control/census.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "control/gang_tasks.h"
#include "control/unknown_name.h"
#include "engine/rank_files.h"
#include "launch/elastic.h"
#include "launch/plan_task.h"

namespace muster::control {

using engine::RankPlace;
using job::Job;
using job::Task;
using job::TaskRole;

namespace {

using Astray = job::RanksAstray::Fault;

/// Task -> the ranks that were seen in it.
using Seen = std::map<std::string, std::set<int>>;

const std::string& launcher_of(const Job& job) {
  return job::deciding_task(job).name;
}

/// How many ranks the job's hostfile gives to each task that was placed.
std::map<std::string, int> slots_of(const Job& job) {
  std::map<std::string, int> slots;
  for (const Task& task : job.tasks) {
    const bool leads = task.name == launcher_of(job);
    if (leads) slots[task.name] = job.spec.leader_slots;
    if (!leads && holds_place(task)) slots[task.name] = job.spec.slots_per_worker;
  }
  return slots;
}

/// Ranks from `first` on that follow on each other, as "3" or "0 to 3"; moves `first` behind them.
std::string take_run(std::set<int>::const_iterator& first, std::set<int>::const_iterator end) {
  const int from = *first;
  int to = from;
  for (++first; first != end && *first == to + 1; ++first) ++to;
  return from == to ? std::to_string(from) : std::to_string(from) + " to " + std::to_string(to);
}

std::string list_of(const std::set<int>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (auto at = ranks.begin(); at != ranks.end();) {
    const bool is_first = at == ranks.begin();
    text += (is_first ? "" : ", ") + take_run(at, ranks.end());
  }
  return text;
}

/// One line for each task, up to a limit.
std::vector<std::string> seen_evidence(const Job& job, const Seen& seen) {
  constexpr size_t kMostLines = 12;
  std::vector<std::string> lines;
  for (const auto& [task, slots] : slots_of(job)) {
    const auto found = seen.find(task);
    if (slots == 0 && found == seen.end()) continue;
    if (lines.size() == kMostLines) {
      lines.emplace_back("...");
      break;
    }
    lines.push_back(task + ": " + list_of(found == seen.end() ? std::set<int>() : found->second));
  }
  return lines;
}

std::string hostfile_advice(const Job& job) {
  const std::string& mpi = job.launch ? job.launch->mpi : std::string();
  // With -f it counts each host's cores instead of its slots.
  if (mpi.starts_with("Intel")) return "use -machinefile /generated/hostfile instead of -hosts";
  if (mpi.starts_with("MPICH")) return "use -f /generated/hostfile instead of -hosts";
  return "use mpirun --hostfile /generated/hostfile instead of --host";
}

/// The tasks of the ranks of the world of this size. nullopt: a rank was seen in two tasks, so
/// several such worlds existed, and their ranks cannot be distinguished.
std::optional<Seen> ranks_of_world(const std::vector<RankPlace>& ranks, int size) {
  Seen seen;
  std::set<int> known;
  for (const RankPlace& place : ranks) {
    if (place.world_size != size) continue;
    if (!known.insert(place.rank).second) return std::nullopt;
    seen[place.task].insert(place.rank);
  }
  return seen;
}

size_t count_ranks(const Seen& seen) {
  size_t count = 0;
  for (const auto& [task, ranks] : seen) count += ranks.size();
  return count;
}

using Worlds = std::map<int, std::set<int>>;  ///< size -> ranks that were seen

/// The largest world of which all ranks have reported, or the one of a given size. (A program may
/// start other programs, which have their own worlds.)
std::optional<int> complete_world(const std::vector<RankPlace>& ranks, std::optional<int> size) {
  Worlds worlds;
  for (const RankPlace& place : ranks) worlds[place.world_size].insert(place.rank);
  for (auto world = worlds.rbegin(); world != worlds.rend(); ++world) {
    const bool is_meant = world->first > 0 && (!size || world->first == *size);
    if (is_meant && static_cast<int>(world->second.size()) >= world->first) return world->first;
  }
  return std::nullopt;
}

bool has_workers(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.role == TaskRole::kWorker && !task.node.empty();
  });
}

/// More of them than the hostfile has slots for.
bool are_all_on_the_launcher(const Job& job, const std::vector<RankPlace>& ranks) {
  return has_workers(job) && !job.spec.allow_launcher_only &&
         static_cast<int>(ranks.size()) > job.spec.leader_slots &&
         std::all_of(ranks.begin(), ranks.end(),
                     [&](const RankPlace& place) { return place.task == launcher_of(job); });
}

/// Ranks that should form one world, but of which each forms its own: their MPI_Init does not
/// understand the environment of another MPI. In a world of the right size, a rank beyond the first
/// would have reported, even if it started other programs.
std::optional<CensusFault> each_alone(const Job& job, const std::vector<RankPlace>& ranks,
                                      const SoleMpirun& asked) {
  const bool is_alone = std::all_of(ranks.begin(), ranks.end(), [](const RankPlace& place) {
    return place.world_size == 1 && place.rank == 0;
  });
  if (!is_alone || ranks.size() < 2 || asked.ranks.value_or(0) < 2) return std::nullopt;
  Seen seen;
  for (const RankPlace& place : ranks) seen[place.task].insert(place.rank);
  return CensusFault{
      .cause = {.fault = Astray::kEachAlone,
                .ranks = *asked.ranks,
                .mpi = job.launch ? job.launch->mpi : ""},
      .advice =
          "build it with that MPI's own compiler (mpicc), or call the mpirun of the MPI that "
          "it was built for",
      .evidence = seen_evidence(job, seen)};
}

CensusFault all_on_the_launcher(const Job& job, const Seen& seen, bool is_certain) {
  return {.cause = {.fault = Astray::kOnLauncher,
                    .ranks = static_cast<int>(count_ranks(seen)),
                    .is_certain = is_certain},
          .advice = hostfile_advice(job),
          .evidence = seen_evidence(job, seen),
          .is_certain = is_certain};
}

/// More ranks in a task than it has slots, while other tasks have free slots: the hostfile was not
/// read.
std::optional<CensusFault> crowded(const Job& job, const Seen& seen) {
  const std::map<std::string, int> slots = slots_of(job);
  size_t all_slots = 0;
  for (const auto& [task, count] : slots) all_slots += static_cast<size_t>(count);
  if (count_ranks(seen) > all_slots)
    return std::nullopt;  // more ranks were requested than slots exist
  for (const auto& [task, ranks] : seen) {
    const auto known = slots.find(task);
    if (known == slots.end() || ranks.size() <= static_cast<size_t>(known->second)) continue;
    return CensusFault{.cause = {.fault = Astray::kCrowded,
                                 .ranks = static_cast<int>(ranks.size()),
                                 .task = task,
                                 .slots = known->second},
                       .advice = hostfile_advice(job),
                       .evidence = seen_evidence(job, seen)};
  }
  return std::nullopt;
}

/// The census without the marks of remote shells.
std::vector<RankPlace> ranks_among(const std::vector<RankPlace>& census) {
  std::vector<RankPlace> ranks;
  std::copy_if(census.begin(), census.end(), std::back_inserter(ranks),
               [](const RankPlace& place) { return place.rank >= 0; });
  return ranks;
}

/// Whether no program follows or accompanies a sleep: "sleep infinity & wait", "sleep 5;".
bool only_sleeps(std::string_view script) {
  if (script.find("$(") != std::string_view::npos || script.find('`') != std::string_view::npos) {
    return false;
  }
  while (!script.empty()) {
    const size_t end = std::min(script.find_first_of(";&|\n"), script.size());
    const std::string_view command = base::trimmed(script.substr(0, end));
    const std::string_view program = command.substr(0, command.find_first_of(" \t"));
    if (!program.empty() && program != "sleep" && program != "wait") return false;
    script.remove_prefix(std::min(end + 1, script.size()));
  }
  return true;
}

/// A command that only keeps the workers running, as Gradient's does: "sleep infinity". A program may
/// follow a sleep: "sleep 5; exec ./serve".
bool only_waits(const std::vector<std::string>& command) {
  return std::all_of(command.begin(), command.end(), [](const std::string& word) {
    const bool sleeps = word.starts_with("sleep") && only_sleeps(word);
    return sleeps || word == "infinity" || word == "sh" || word == "-c";
  });
}

/// Whether the job's command has to start ranks in its workers. Ranks that Slurm starts need no
/// remote shell, workers may have their own command, and the user of an interactive job starts
/// programs by hand.
bool needs_its_workers(const Job& job) {
  const bool is_by_srun = job.launch && job.launch->by == job::LaunchBy::kSrun;
  return has_workers(job) && !job.spec.allow_launcher_only && !is_by_srun &&
         only_waits(job.spec.worker_command) && job.spec.scheduling.purpose != job::Purpose::kBuild;
}

std::optional<CensusFault> nothing_in_a_worker(const Job& job,
                                               const std::vector<RankPlace>& census) {
  const bool is_any = std::any_of(census.begin(), census.end(), [&](const RankPlace& place) {
    return place.task != launcher_of(job);
  });
  if (is_any || !needs_its_workers(job)) return std::nullopt;
  return CensusFault{.cause = {.fault = Astray::kNoneInAWorker},
                     .advice = "start the program by mpirun (mpirun -np " +
                               std::to_string(job.spec.workers * job.spec.slots_per_worker) +
                               " PROGRAM), or submit it as a 'single' job; --allow-launcher-only "
                               "(allow_launcher_only: true) lets such a job succeed",
                     .evidence = {}};
}

/// With Open MPI every rank reports itself. Ranks of other MPIs are found among the processes, and
/// a rank that ends at once may be missed.
bool misses_no_rank(const Job& job) {
  return !job.launch || job.launch->mpi.starts_with("Open MPI");
}

}  // namespace

std::optional<CensusFault> hanging_rank(const Job& job, const std::vector<RankPlace>& census) {
  const auto place = std::find_if(census.begin(), census.end(), [](const RankPlace& seen) {
    return seen.rank == engine::kHangs;
  });
  if (job.spec.kind != job::Kind::kMpi || place == census.end()) return std::nullopt;
  return CensusFault{
      .cause = {.fault = Astray::kHangsInFinalize, .task = place->task},
      .advice =
          "everything that the ranks wrote before MPI_Finalize is kept; Debian's MPICH 4.0.2 "
          "sometimes hangs when it uses UCX over TCP: use Open MPI, or an MPICH that is built "
          "with libfabric (--with-device=ch4:ofi)",
      .evidence = {}};
}

CensusVerdict judge_at_start(const Job& job, const std::vector<RankPlace>& census) {
  const std::vector<RankPlace> ranks = ranks_among(census);
  if (job.spec.kind != job::Kind::kMpi || ranks.empty()) return {};
  const auto asked = sole_mpirun(job.spec);
  if (asked) {
    if (auto fault = each_alone(job, ranks, *asked)) return {.is_final = true, .fault = fault};
  }
  const auto world = complete_world(ranks, asked ? asked->ranks : std::nullopt);
  if (!world) return {};
  const auto seen = ranks_of_world(ranks, *world);
  if (!seen) return {};
  const bool is_meant = !asked || asked->places_ranks;
  if (are_all_on_the_launcher(job, ranks)) {
    // A script may prepare data on the launcher, usually with one rank.
    if (is_meant && *world == 1) return {};
    return {.is_final = true, .fault = all_on_the_launcher(job, *seen, !is_meant)};
  }
  // The script may start another program, or the world may change its size.
  if (!asked || launch::resizes_live(job.spec)) return {};
  return {.is_final = true, .fault = is_meant ? std::nullopt : crowded(job, *seen)};
}

std::optional<CensusFault> judge_at_end(const Job& job, const std::vector<RankPlace>& census) {
  if (job.spec.kind != job::Kind::kMpi) return std::nullopt;
  const std::vector<RankPlace> ranks = ranks_among(census);
  if (ranks.empty()) return nothing_in_a_worker(job, census);
  int world_size = 0;
  std::set<int> known;
  Seen seen;
  for (const RankPlace& place : ranks) {
    world_size = std::max(world_size, place.world_size);
    known.insert(place.rank);
    seen[place.task].insert(place.rank);
  }
  const bool is_whole = static_cast<int>(known.size()) >= world_size;
  if (!is_whole && !misses_no_rank(job)) return std::nullopt;
  if (are_all_on_the_launcher(job, ranks)) {
    return CensusFault{.cause = {.fault = Astray::kRanOnLauncher},
                       .advice = hostfile_advice(job),
                       .evidence = seen_evidence(job, seen)};
  }
  // Ranks of worlds of different sizes do not form one world.
  if (launch::resizes_live(job.spec)) return std::nullopt;
  if (is_whole) {  // a program may end before the census is read
    const auto asked = sole_mpirun(job.spec);
    return asked && !asked->places_ranks ? crowded(job, seen) : std::nullopt;
  }
  return CensusFault{.cause = {.fault = Astray::kTooFewStarted,
                               .ranks = static_cast<int>(known.size()),
                               .of = world_size},
                     .advice = hostfile_advice(job),
                     .evidence = seen_evidence(job, seen)};
}

namespace {

using Argv = std::vector<std::string>;

// Characters with a meaning for a shell.
constexpr std::string_view kShellSyntax = "|&;<>()$`\\*?[]#~!{}\n'\"";

constexpr std::array<std::string_view, 4> kShells{"sh", "bash", "dash", "zsh"};

// Options with one dash or two, of Open MPI, Hydra and Intel MPI.
constexpr std::array<std::string_view, 22> kPlacing{
    "host",       "H",       "hosts",       "hostlist",      "machine",          "rankfile",
    "rf",         "N",       "npernode",    "npersocket",    "pernode",          "ppn",
    "perhost",    "rr",      "grr",         "oversubscribe", "default-hostfile", "app",
    "configfile", "nolocal", "loadbalance", "cpus-per-proc"};
// Options that name a hostfile, which may be the job's.
constexpr std::array<std::string_view, 3> kHostfileOptions{"hostfile", "machinefile", "f"};
constexpr std::array<std::string_view, 5> kRanks{"np", "n", "c", "nrs", "nproc"};

// The names of the job's hostfile.
constexpr std::array<std::string_view, 3> kOurHostfiles{
    "/generated/hostfile", "/generated/hostfile.intel", "/etc/mpi/hostfile"};

// Variables that place ranks, or that override settings of the job.
constexpr std::array<std::string_view, 6> kPlacingVariables{"OMPI_MCA_rmaps",
                                                            "PRTE_MCA_rmaps",
                                                            "OMPI_MCA_orte_default_hostfile",
                                                            "PRTE_MCA_prte_default_hostfile",
                                                            "HYDRA_",
                                                            "I_MPI_"};

std::string_view file_name_of(std::string_view program) {
  return program.substr(program.rfind('/') + 1);
}

/// mpirun.openmpi, mpiexec.hydra: names in distributions.
bool is_mpirun(std::string_view program) {
  const std::string_view name = file_name_of(program);
  constexpr std::array<std::string_view, 4> kNames{"mpirun", "mpiexec", "orterun", "prterun"};
  return is_one_of(name.substr(0, name.find('.')), kNames);
}

/// The option without its dashes; empty: the word is not an option.
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

/// The words of `sh -c 'exec mpirun ...'`, if the shell runs nothing else.
Argv without_shell(Argv argv) {
  const bool is_shell =
      argv.size() == 3 && is_one_of(file_name_of(argv[0]), kShells) && argv[1] == "-c";
  if (!is_shell || argv[2].find_first_of(kShellSyntax) != std::string::npos) return argv;
  Argv words = split(argv[2]);
  if (!words.empty() && words.front() == "exec") words.erase(words.begin());
  return words;
}

bool is_placing_option(const Argv& argv, size_t at) {
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

/// Reads words before and after the program's name: an option that seems to be given twice is
/// ignored.
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
  const Argv argv = without_shell(launch::program_of(spec, job::TaskRole::kLauncher, {}));
  if (argv.empty() || !is_mpirun(argv.front())) return std::nullopt;
  SoleMpirun found{.ranks = ranks_in(argv)};
  // Several programs in one world: mpirun -np 1 a : -np 3 b.
  const bool is_several = std::find(argv.begin(), argv.end(), ":") != argv.end();
  if (is_several) found.ranks.reset();
  found.places_ranks =
      is_several || sets_where(spec.environment) || sets_where(spec.leader.environment);
  for (size_t i = 1; i < argv.size(); ++i) found.places_ranks |= is_placing_option(argv, i);
  return found;
}

}  // namespace muster::control
