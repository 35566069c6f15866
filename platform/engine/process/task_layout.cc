#include "engine/process/task_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <sstream>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "engine/host_facts.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/device_files.h"
#include "engine/process/sandbox.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;
using base::UniqueFd;

// --- the user database

std::string with_plain_shell(std::string_view passwd, std::string_view user) {
  std::string text;
  while (!passwd.empty()) {
    const size_t end = passwd.find('\n');
    std::string_view line = passwd.substr(0, end);
    passwd.remove_prefix(end == std::string_view::npos ? passwd.size() : end + 1);
    const bool own = line.starts_with(user) && line.substr(user.size()).starts_with(':');
    if (own) line = line.substr(0, line.rfind(':') + 1);
    text += line;
    text += own ? "/bin/sh\n" : "\n";
  }
  return text;
}

std::string unlocked_shadow(std::string_view user) {
  return std::string(user) + ":*:1:0:99999:7:::\n";
}

// --- /etc/hosts

namespace {

/// A reader sees a write within one page as a whole or not at all.
constexpr size_t kPage = 4096;

std::string line_of(const std::string& name, const std::string& address) {
  return address + " " + name + "\n";
}

/// The address of each name: its first line counts.
std::map<std::string, std::string> addresses_by_name(const std::string& text) {
  std::map<std::string, std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string name; words >> name;) names.emplace(name, address);
  }
  return names;
}

/// Appends a line that does not cross a page boundary: if necessary, fills the page with empty
/// lines first.
Result<void> append_line(const UniqueFd& file, const std::string& line, size_t& size) {
  const size_t left = kPage - size % kPage;
  if (line.size() > left) {
    MUSTER_CHECK(base::write_all(file.get(), std::string(left, '\n')));
    size += left;
  }
  size += line.size();
  return base::write_all(file.get(), line);
}

}  // namespace

std::string hosts_file(const HostNames& names) {
  std::string text;
  for (const auto& [name, address] : names) text += line_of(name, address);
  const auto machine = base::read_file("/etc/hosts");
  // A minimal system may have no /etc/hosts, but programs look up localhost.
  return text + (machine ? *machine : "127.0.0.1 localhost\n");
}

Result<void> add_hosts(const std::filesystem::path& path, const HostNames& names) {
  MUSTER_TRY(const std::string text, base::read_file(path));
  auto known = addresses_by_name(text);
  std::vector<std::string> lines;
  if (!text.ends_with('\n')) lines.emplace_back("\n");
  for (const auto& [name, address] : names) {
    const auto [found, is_new] = known.emplace(name, address);
    if (is_new) {
      lines.push_back(line_of(name, address));
    } else if (found->second != address) {
      return base::Error{.code = base::ErrorCode::kConflict,
                         .what = "'" + name + "' is " + found->second +
                                 " in /etc/hosts already, which conflicts with " + address,
                         .advice = "remove the name from this machine's /etc/hosts"};
    }
  }
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return base::system_error("cannot write '" + path.string() + "'", errno);
  size_t size = text.size();
  for (const std::string& line : lines) MUSTER_CHECK(append_line(file, line, size));
  return {};
}

// --- the whole folder

namespace {

/// The name under which sshd finds the user of the task.
std::string login_name(const launch::TaskPlan& plan, const ProcessEngineOptions& options) {
  const bool is_other = options.accounts && options.accounts->is_root && !plan.unix_account.empty();
  return is_other ? plan.unix_account : user_name();
}

Result<void> write_account_files(const TaskFolder& folder, const std::string& user) {
  MUSTER_TRY(const std::string passwd, base::read_file("/etc/passwd"));
  MUSTER_CHECK(base::write_new_file(folder.passwd(), with_plain_shell(passwd, user), 0644));
  return base::write_new_file(folder.shadow(), unlocked_shadow(user));
}

/// Makes /run/sshd, which an sshd of root requires; its package makes the folder only when the
/// system's sshd starts. Only for tasks without a sandbox: a sandbox has its own /run/sshd.
Result<void> prepare_for_sshd(const launch::SshService& ssh) {
  const bool is_ours = !ssh.command.empty() && ssh.command.front().ends_with("/muster-rsh");
  if (is_ours || ::geteuid() != 0 || ::mkdir("/run/sshd", 0755) == 0 || errno == EEXIST) return {};
  return base::system_error("cannot make /run/sshd, which sshd needs", errno);
}

/// The folder may belong to root, so only its content is removed: that of a start that failed.
Result<void> clear_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  if (error) return base::system_error("cannot read '" + folder.string() + "'", error.value());
  for (const fs::path& entry : entries) MUSTER_CHECK(base::remove_tree(entry));
  return {};
}

Result<void> make_generated_folder(const TaskFolder& folder, const fs::path& in_container) {
  MUSTER_CHECK(base::make_private_folder(in_container.empty() ? folder.generated() : folder.path));
  if (in_container.empty()) return {};
  MUSTER_CHECK(clear_folder(in_container));
  std::error_code error;
  fs::create_directory_symlink(in_container, folder.generated(), error);
  if (!error) return {};
  return base::system_error("cannot make '" + folder.generated().string() + "'", error.value());
}

/// Links to files of the generated folder at other paths of the container. Returns why some cannot
/// be made: most programs do not need them.
std::vector<std::string> link_in_container(const launch::TaskPlan& plan,
                                           const fs::path& generated) {
  std::vector<std::string> faults;
  for (const auto& [name, place] : plan.also_at) {
    std::error_code error;
    fs::create_directories(fs::path(place).parent_path(), error);
    if (!error) fs::remove(place, error);
    if (!error) fs::create_symlink(generated / name, place, error);
    if (error) {
      faults.push_back("cannot make the link " + place + " to " + (generated / name).string() +
                       ": " + error.message());
    }
  }
  return faults;
}

Result<void> write_files(const launch::TaskPlan& plan, const TaskFolder& folder,
                         const ProcessEngineOptions& options) {
  MUSTER_CHECK(make_generated_folder(folder, options.generated_in_container));
  for (const std::string& name : plan.folders) {
    MUSTER_CHECK(base::make_private_folder(folder.generated() / name));
  }
  for (const launch::PlannedFile& file : plan.files) {
    MUSTER_CHECK(base::write_new_file(folder.generated() / file.path, file.content, file.mode));
  }
  MUSTER_CHECK(base::write_new_file(folder.log(), ""));
  MUSTER_CHECK(base::write_new_file(folder.hosts(), hosts_file(plan.hosts), 0644));
  const bool sandboxed = plan.sandbox == job::Sandbox::kBubblewrap;
  if (plan.ssh && sandboxed) {
    MUSTER_CHECK(write_account_files(folder, login_name(plan, options)));
  }
  return {};
}

/// Declared GPUs have no files: they keep their names, and so do those that the user chose.
void name_own_gpus(const std::vector<std::string>& gpus,
                   std::map<std::string, std::string>& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.end() || visible->second != base::joined(gpus, ",")) return;
  const std::vector<std::string> files = gpu_files(gpus);
  const bool are_there = std::all_of(files.begin(), files.end(), [](const std::string& file) {
    return fs::exists(fs::path("/dev") / file);
  });
  if (are_there) visible->second = base::joined(names_among_own(gpus), ",");
}

/// Where no control group divides CPU time: a tenth of the weight of the server, and of the processes
/// that hold tasks.
constexpr int kNicenessOfTeam = 10;

/// `has_own_users`: the task has a user namespace of its own.
TaskLimits limits_of(const launch::TaskPlan& plan, const TaskFolder& folder,
                     const ProcessEngineOptions& options, const std::vector<int>& cpus,
                     bool has_own_users) {
  TaskLimits limits = options.limits;
  limits.cpus = cpus;
  if (has_own_users) limits.user_processes = limits.processes;
  if (!options.holds_claims) return limits;
  limits.memory_bytes = plan.resources.memory_bytes;
  limits.scratch = {options.generated_in_container.empty()
                        ? folder.generated().string()
                        : options.generated_in_container.string()};
  const fs::path attempt = folder.path.parent_path();
  const std::string name = attempt.parent_path().filename().string() + "-" +
                           attempt.filename().string() + "-" + folder.path.filename().string();
  limits.groups = groups_of(options.group_places, name, limits, plan.resources.cpu_milli);
  if (options.team && !limits.has_group("cpu")) limits.niceness = kNicenessOfTeam;
  return limits;
}

Confinement confinement_of(const ProcessEngineOptions& options) {
  if (options.team) return Confinement::kMachine;
  return options.filter.empty() ? Confinement::kNone : Confinement::kRights;
}

/// The plan without the sandbox.
ShimPlan shim_plan_of(const launch::TaskPlan& plan, const TaskFolder& folder,
                      const ProcessEngineOptions& options, const TeamPlaces& places,
                      const std::vector<int>& cpus, bool has_own_users) {
  const bool sandboxed = plan.sandbox == job::Sandbox::kBubblewrap;
  const bool is_in_container = !options.generated_in_container.empty();
  const fs::path generated = is_in_container ? options.generated_in_container : folder.generated();
  ShimPlan shim{.inner = {.argv = plan.argv,
                          .folder = plan.folder,
                          .own_process_tree = sandboxed,
                          .input = plan.input,
                          .terminal = plan.terminal,
                          .generated = sandboxed ? "/generated" : generated.string(),
                          .mpi = plan.mpi,
                          .takes_ranks = plan.takes_ranks},
                .address = plan.address,
                .serves = plan.serves,
                .grace = plan.grace,
                .tags_ranks = plan.tags_ranks,
                .prepends_rank = plan.prepends_rank,
                .log_quota = options.log_quota,
                .is_leashed = options.tasks_end_with_it,
                .sampling = {.first = options.first_sample,
                             .interval = options.sample_interval,
                             .nvml = options.nvml,
                             .gpus = plan.gpus}};
  auto environment = plan.environment;
  if (sandboxed && options.team) environment["HOME"] = home_of_tasks(places);
  if (sandboxed && options.own_devices) name_own_gpus(plan.gpus, environment);
  for (const auto& [name, value] : environment) {
    shim.inner.environment.emplace_back(name).append("=").append(value);
  }
  shim.inner.limits = limits_of(plan, folder, options, cpus, has_own_users);
  if (sandboxed || is_in_container) shim.inner.filter = options.filter;
  if (is_in_container) {
    shim.generated = generated.string();
    shim.notices = link_in_container(plan, generated);
  }
  if (plan.own_rank_output) shim.inner.rank_output_folder = shim.inner.generated;
  if (plan.ssh) {
    if (!plan.ssh->bind.empty()) shim.address = plan.ssh->bind;
    shim.port = plan.ssh->port;
    shim.inner.ssh_command = plan.ssh->command;
  }
  return shim;
}

}  // namespace

Result<void> lay_out_task(const launch::TaskPlan& plan, const TaskFolder& folder,
                          const VolumeFolders& volumes, const ProcessEngineOptions& options,
                          const std::vector<int>& cpus) {
  MUSTER_CHECK(write_files(plan, folder, options));
  if (options.egress) {
    const Resolver resolver = resolver_for_jobs(options.egress->nameservers);
    MUSTER_CHECK(base::write_new_file(folder.resolver(), resolver.text, 0644));
  }
  const bool sandboxed = plan.sandbox == job::Sandbox::kBubblewrap;
  std::optional<AssignedAccount> assigned;
  if (options.accounts && sandboxed) {
    MUSTER_TRY(assigned, assign_account(*options.accounts, plan, ::geteuid(), ::getegid()));
  }
  TeamPlaces places = options.team.value_or(TeamPlaces());
  std::error_code error;
  if (assigned && fs::is_directory(assigned->home, error)) places.account_home = assigned->home;
  // Bubblewrap makes a user namespace for the sandbox of an ordinary account.
  const bool has_own_users =
      assigned ? assigned->account.has_namespace() : sandboxed && ::geteuid() != 0;
  ShimPlan shim = shim_plan_of(plan, folder, options, places, cpus, has_own_users);
  if (sandboxed) {
    MUSTER_TRY(std::vector<Mount> mounts, find_volumes(plan, volumes));
    const std::string& home = places.homes_of_projects ? plan.project : plan.owner;
    if (options.team) {
      MUSTER_TRY(const auto more,
                 mounts_in_private_places(places, home, options.shim.parent_path()));
      mounts.insert(mounts.end(), more.begin(), more.end());
      MUSTER_CHECK(check_working_folder(places, plan.folder, mounts));
    }
    if (assigned) {
      const bool has_home = options.team && home_of_tasks(places) != "/tmp";
      shim.inner.account = assigned->account;
      shim.handed = handed_files(*assigned, *options.accounts, plan, volumes, folder,
                                 has_home ? places.homes / home : fs::path());
    }
    // A server for a single user hides nothing: tasks act for the user anyway.
    const bool shared = !options.hidden.empty();
    BubblewrapWords devices;
    if (options.own_devices) devices = own_devices(gpu_files(plan.gpus));
    MUSTER_TRY(shim.wrapper,
               sandbox_command(plan, folder, mounts, volumes.hidden, shared, volumes.secret,
                               confinement_of(options), assigned.has_value(), devices));
  } else if (plan.ssh) {
    MUSTER_CHECK(prepare_for_sshd(*plan.ssh));
  }
  const TaskLimits& limits = shim.inner.limits;
  const bool fills_memory = limits.memory_bytes > 0 && !limits.has_group("memory");
  // Files in /dev/shm and /tmp are in memory that counts for no process.
  const int64_t most = limits.scratch_bytes > 0 ? limits.scratch_bytes
                       : fills_memory           ? limits.memory_bytes
                                                : 0;
  if (most > 0) limit_temporary_places(most, shim.wrapper);
  // With an account, the inner half loads it, once it has the ids of the task.
  if (sandboxed && !shim.inner.filter.empty() && !shim.inner.account) {
    append_words(shim.wrapper, {"--seccomp", std::to_string(kInnerFilter)});
  }
  shim.wrapper.insert(shim.wrapper.end(), {options.shim.string(), "--inner"});
  return base::write_new_file(folder.plan(), encode(shim));
}

Result<void> remove_tree_of_tasks(const ProcessEngineOptions& options, const fs::path& path) {
  auto removed = base::remove_tree(path);
  if (removed || options.id_space() == nullptr) return removed;
  return run_in_id_space(options.shim.string(), *options.id_space(), {"--remove", path.string()});
}

}  // namespace muster::engine
