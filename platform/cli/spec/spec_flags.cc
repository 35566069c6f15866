#include "cli/spec/spec_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/spec/begin_time.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_file.h"
#include "config/yaml.h"
#include "job/job.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/input.h"
#include "record/type.h"

namespace muster::cli::spec {

namespace {

/// "KEY=VALUE" of each text. A text without "=" has an empty value.
nlohmann::json pairs_of(const std::vector<std::string>& texts) {
  nlohmann::json pairs = nlohmann::json::object();
  for (const std::string& text : texts) {
    const size_t equals = std::min(text.find('='), text.size());
    pairs[text.substr(0, equals)] = text.substr(std::min(equals + 1, text.size()));
  }
  return pairs;
}

/// A flag's value as JSON, as a job file would have it.
nlohmann::json typed_value(const record::Row& row, const FlagReader& reader) {
  const record::Flag& flag = row.notes.flag;
  if (flag.value == nullptr) return flag.means == nullptr ? "true" : flag.means;
  const bool is_list = row.type->element() != nullptr || row.type->is_texts();
  if (is_list) return reader.texts(flag.name);
  if (row.type->is_pairs()) return pairs_of(reader.texts(flag.name));
  return reader.text(flag.name);
}

/// Whether a single value is empty. It is most likely that of a variable that is not set, and would
/// be the same as no flag.
bool is_empty_text(const record::Row& row, const FlagReader& reader) {
  const record::Flag& flag = row.notes.flag;
  const bool is_list =
      row.type->element() != nullptr || row.type->is_texts() || row.type->is_pairs();
  return flag.value != nullptr && !is_list && reader.text(flag.name).empty();
}

/// Reads every flag that sets exactly one field.
void read_plain_flags(FlagReader& reader, job::JobSpec& spec) {
  const record::Table& table = record::table_for<job::JobSpec>();
  for (const record::Place& place : record::places_of(table)) {
    const record::Flag& flag = place.row->notes.flag;
    if (!place.has_flag || flag.by_hand || !reader.has(flag.name)) continue;
    if (is_empty_text(*place.row, reader)) {
      if (!reader.is_at_fault(flag.name)) {
        reader.fault(flag.name, "is empty; give a value, or leave it out");
      }
      continue;
    }
    std::vector<base::Fault> faults;
    const auto typed = record::ValueTree::of(typed_value(*place.row, reader));
    record::assign(table, &spec, place.path, typed.root(), faults);
    for (base::Fault& fault : faults) reader.fault(flag.name, std::move(fault.what));
  }
}

/// Applies --set, which overrides all other flags. Returns its faults, by key.
std::vector<base::Fault> read_settings(FlagReader& reader, job::JobSpec& spec) {
  SettingsRead read = apply_settings(reader.texts("--set"), spec);
  for (const base::Fault& fault : read.faults) {
    base::Fault shown = fault_of_setting(fault);
    reader.fault(std::move(shown.field), std::move(shown.what));
  }
  return std::move(read.faults);
}

void read_environment(const Caller& caller, FlagReader& reader, job::JobSpec& spec) {
  for (const std::string& text : reader.texts("--env")) {
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      spec.environment[text.substr(0, equals)] = text.substr(equals + 1);
    } else if (const auto here = caller.environment.find(text); here != caller.environment.end()) {
      spec.environment[text] = here->second;
    } else {
      reader.fault("--env", "'" + text + "' is not set in this shell; give a value: NAME=VALUE");
    }
  }
}

/// NAME[=PLACE]; the place is NAME by default. A secret of the spec with the same place is replaced.
void read_secret_flags(FlagReader& reader, job::JobSpec& spec) {
  const auto read = [&](const std::string& flag, std::string job::SecretUse::* place) {
    std::vector<job::SecretUse> added;
    for (const std::string& text : reader.texts(flag)) {
      const size_t equals = text.find('=');
      job::SecretUse use{.name = text.substr(0, equals)};
      use.*place = equals == std::string::npos ? use.name : text.substr(equals + 1);
      if (use.*place == "") {
        reader.fault(flag, "'" + text + "' has an empty target; give NAME or NAME=TARGET");
      } else {
        added.push_back(std::move(use));
      }
    }
    std::erase_if(spec.secrets, [&](const job::SecretUse& old) {
      return std::any_of(added.begin(), added.end(),
                         [&](const job::SecretUse& use) { return use.*place == old.*place; });
    });
    spec.secrets.insert(spec.secrets.end(), added.begin(), added.end());
  };
  read("--secret", &job::SecretUse::variable);
  read("--secret-file", &job::SecretUse::file);
}

/// --after, --after-member and --begin.
void read_start_conditions(const Caller& caller, FlagReader& reader, job::JobSpec& spec) {
  for (const std::string flag : {"--after", "--after-member"}) {
    for (const std::string& text : reader.texts(flag)) {
      if (auto dependency = job::parse_dependency(text)) {
        dependency->by_member = flag == "--after-member";
        spec.after.push_back(*std::move(dependency));
      } else {
        reader.fault(flag, "'" + text + "' " + job::kDependencyForms);
      }
    }
  }
  if (!reader.has("--begin")) return;
  const auto begin = parse_begin(reader.text("--begin"), caller.now);
  if (begin) {
    spec.scheduling.begin = *begin;
  } else {
    reader.fault("--begin", begin.error().what);
  }
}

/// Reads the flags that all kinds share.
job::JobSpec read_common(const Arguments& arguments, const Caller& caller, FlagReader& reader) {
  job::JobSpec spec = default_spec(caller);
  spec.command = arguments.program;
  read_plain_flags(reader, spec);
  read_scheduling_flags(reader, spec.scheduling);
  read_start_conditions(caller, reader, spec);
  read_environment(caller, reader, spec);
  read_secret_flags(reader, spec);
  read_content_flags(reader, spec);
  return spec;
}

void read_parameter_servers(FlagReader& reader, job::JobSpec& spec) {
  if (reader.has("--parameter-server-command")) {
    spec.parameter_server.command = {"sh", "-c", reader.text("--parameter-server-command")};
  }
}

/// --evaluator-command implies one evaluator.
void read_evaluator(FlagReader& reader, job::JobSpec& spec) {
  const bool has_command = reader.has("--evaluator-command");
  spec.evaluators = reader.number("--evaluators", has_command ? 1 : 0);
  if (has_command) spec.evaluator.command = {"sh", "-c", reader.text("--evaluator-command")};
}

/// The flag for a fault such as "secrets[2].name".
std::string flag_of_secret(const job::JobSpec& spec, const std::string& field) {
  constexpr std::string_view kList = "secrets[";
  if (!field.starts_with(kList)) return "--secret";
  const size_t index = std::stoul(field.substr(kList.size()));
  return spec.secrets[index].file.empty() ? "--secret" : "--secret-file";
}

/// The flag for a fault of "volumes", or for one such as "volumes[2].target".
std::string flag_of_volumes(const job::JobSpec& spec, const std::string& field,
                            const FlagReader& reader) {
  const auto is_artifacts = [](const job::Volume& volume) {
    return volume.kind == job::Volume::Kind::kArtifacts;
  };
  constexpr std::string_view kList = "volumes[";
  const std::vector<job::Volume>& all = spec.volumes;
  const bool all_are_artifacts = field.starts_with(kList)
                                     ? is_artifacts(all[std::stoul(field.substr(kList.size()))])
                                     : std::all_of(all.begin(), all.end(), is_artifacts);
  return all_are_artifacts && reader.has("--artifacts") ? "--artifacts" : "--volume";
}

std::string flag_of_fault(const job::JobSpec& spec, const std::string& field,
                          const FlagReader& reader) {
  if (field.starts_with("secrets")) return flag_of_secret(spec, field);
  if (field.starts_with("volumes")) return flag_of_volumes(spec, field, reader);
  return flag_of_spec_field(field);
}

/// `settings`: the faults of --set.
void check(const job::JobSpec& spec, std::vector<base::Fault> settings, FlagReader& reader) {
  // A flag that could not be read still has its default. What is wrong with that default is not
  // reported, because the user did not write it.
  const FlagReader unread = reader;
  const bool workers_unread =
      unread.is_at_fault("--workers") || unread.is_at_fault("--max-workers");
  std::vector<base::Fault>& faults = settings;
  faults.insert(faults.end(), unread.faults().begin(), unread.faults().end());
  for (const base::Fault& fault : job::validate(spec)) {
    std::string flag = flag_of_fault(spec, fault.field, reader);
    if (flag == "--min-workers" && workers_unread) continue;
    if (flag == "--resize" && unread.is_at_fault("--parameter-servers")) continue;
    if (flag == "--workers" && reader.has("--max-workers")) flag = "--max-workers";
    if (unread.is_at_fault(flag) || config::follows_from_unread(fault.field, faults)) continue;
    const bool is_gone = fault.field == "folder" && spec.folder.empty();
    reader.fault(flag, is_gone ? kFolderIsGone : fault.what);
  }
  const bool is_array =
      reader.has("--array") || reader.has("--each-line") || reader.has("--each-json");
  if (reader.has("--after-member") && !is_array && spec.array.is_none()) {
    reader.fault("--after-member", "is for the members of an array; of a single job give --after");
  }
}

/// Completes the spec after the flags of the kind were read, and checks it.
void complete(const Caller& caller, FlagReader& reader, job::JobSpec& spec) {
  std::vector<base::Fault> settings = read_settings(reader, spec);
  resolve_paths(caller.folder, spec);
  note_inherited(reader, spec);
  check(spec, std::move(settings), reader);
}

bool is_mpi_launcher(const std::string& program) {
  constexpr std::array<std::string_view, 4> kLaunchers{"mpirun", "mpiexec", "mpiexec.hydra",
                                                       "horovodrun"};
  const std::string name = std::filesystem::path(program).filename().string();
  return std::find(kLaunchers.begin(), kLaunchers.end(), name) != kLaunchers.end();
}

void put_under_mpirun(const Caller& caller, job::JobSpec& spec) {
  if (spec.command.empty() || is_mpi_launcher(spec.command.front())) return;
  if (spec.launch == job::LaunchBy::kSrun) return;  // Slurm starts the program without mpirun
  std::vector<std::string> command{"mpirun", "-np", std::to_string(spec.workers)};
  command.insert(command.end(), spec.command.begin(), spec.command.end());
  spec.command = std::move(command);
  // In most images, programs run as root.
  if (!caller.is_root && spec.image.empty()) return;
  let_root_run_open_mpi(spec);
}

}  // namespace

std::string flag_of_spec_field(const std::string& field) {
  if (field.ends_with(".log_pattern")) return "--on-log";
  const record::Place* nearest = nullptr;
  static const std::vector<record::Place> places =
      record::places_of(record::table_for<job::JobSpec>());
  for (const record::Place& place : places) {
    const std::string& path = place.path;
    if (!place.has_flag || !record::is_within(field, path)) continue;
    if (nearest == nullptr || path.size() > nearest->path.size()) nearest = &place;
  }
  return nearest == nullptr ? field : nearest->row->notes.flag.name;
}

void let_root_run_open_mpi(job::JobSpec& spec) {
  // As variables (4.x and 5.x have different names), because MPICH and Intel MPI refuse the flag
  // --allow-run-as-root.
  for (const char* prefix : {"OMPI", "PRTE"}) {
    spec.environment.emplace(std::string(prefix) + "_ALLOW_RUN_AS_ROOT", "1");
    spec.environment.emplace(std::string(prefix) + "_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
}

void read_settings_and_check(const Caller& caller, FlagReader& reader, job::JobSpec& spec) {
  std::vector<base::Fault> settings = read_settings(reader, spec);
  resolve_paths(caller.folder, spec);
  check(spec, std::move(settings), reader);
}

job::JobSpec default_spec(const Caller& caller) {
  job::JobSpec spec;
  spec.folder = caller.folder;
  spec.environment = inherited_environment(caller.environment);
  if (!caller.project.empty()) spec.project = caller.project;
  return spec;
}

void note_inherited(const FlagReader& reader, job::JobSpec& spec) {
  std::set<std::string> names;
  for (const auto& [name, value] : spec.environment) names.insert(name);
  for (const std::string& text : reader.texts("--env")) names.erase(text.substr(0, text.find('=')));
  bool has_folder = reader.has("--folder");
  for (const std::string& text : reader.texts("--set")) {
    const std::string key = text.substr(0, text.find('='));
    if (key == "folder") has_folder = true;
    constexpr std::string_view kVariable = "environment.";
    if (key.starts_with(kVariable)) names.erase(key.substr(kVariable.size()));
  }
  job::note_inherited(names, !has_folder, spec);
}

std::optional<FlagOverrides> read_overrides(const Arguments& arguments, const Caller& caller,
                                            FlagReader& reader) {
  const Flags flags = override_flags();
  const bool has_flags = std::any_of(flags.begin(), flags.end(),
                                     [&](const Flag& flag) { return arguments.has(flag.name); });
  if (!has_flags && !arguments.has_program) return std::nullopt;
  FlagOverrides overrides{.arguments = arguments, .caller = caller};
  job::JobSpec example = default_spec(caller);
  override_spec(overrides, reader, example);
  return overrides;
}

std::set<std::string> override_spec(const FlagOverrides& overrides, FlagReader& reader,
                                    job::JobSpec& spec) {
  const Arguments& arguments = overrides.arguments;
  std::set<std::string> fields;
  if (arguments.has_program) {
    spec.command = arguments.program;
    spec.arguments.clear();
    fields.insert("command");
  }
  const bool leader_is_alike = spec.leader.resources == spec.resources &&
                               (spec.kind == job::Kind::kGrpc || spec.kind == job::Kind::kTorch);
  read_plain_flags(reader, spec);
  if (leader_is_alike) spec.leader.resources = spec.resources;
  std::vector<job::RetryRule> rules = std::exchange(spec.scheduling.retry_rules, {});
  read_scheduling_flags(reader, spec.scheduling);
  spec.scheduling.retry_rules.insert(spec.scheduling.retry_rules.end(), rules.begin(), rules.end());
  if (reader.has("--after") || reader.has("--after-member")) spec.after.clear();
  read_start_conditions(overrides.caller, reader, spec);
  read_environment(overrides.caller, reader, spec);
  for (const std::string& text : reader.texts("--env")) {
    fields.insert("environment." + text.substr(0, text.find('=')));
  }
  if (reader.has("--folder")) fields.insert("folder");
  read_secret_flags(reader, spec);
  read_content_flags(reader, spec);
  if (reader.has("--workers") || reader.has("--max-workers")) {
    read_workers(reader, spec);
    fields.insert("workers");
  }
  read_parameter_servers(reader, spec);
  if (reader.has("--evaluators") || reader.has("--evaluator-command")) read_evaluator(reader, spec);
  return fields;
}

job::JobSpec read_submit_spec(job::Kind kind, const Arguments& arguments, const Caller& caller,
                              FlagReader& reader) {
  job::JobSpec spec = read_common(arguments, caller, reader);
  if (reader.has("--interactive") && spec.command.empty() && spec.image.empty()) {
    // The job exists only for the shells that are opened in it.
    spec.command = {"sleep", "infinity"};
  }
  spec.kind = kind;
  if (arguments.names.empty()) {
    reader.fault("NAME", "is missing; name the job");
  } else {
    spec.name = arguments.names.front();
  }
  if (kind != job::Kind::kSingle) read_workers(reader, spec);
  if (kind == job::Kind::kGrpc || kind == job::Kind::kTorch) {
    spec.leader.resources = spec.resources;  // the leader works like the workers
  }
  if (kind == job::Kind::kGrpc) {
    read_parameter_servers(reader, spec);
    read_evaluator(reader, spec);
  }
  complete(caller, reader, spec);
  return spec;
}

job::JobSpec read_run_spec(const Arguments& arguments, const Caller& caller,
                           const std::string& name, FlagReader& reader) {
  job::JobSpec spec = read_common(arguments, caller, reader);
  spec.name = reader.text("--name", name);
  const int processes = reader.number("--workers", 1, job::kMaxWorkers);
  if (processes != 1) {
    spec.kind = job::Kind::kMpi;
    spec.workers = processes;
    put_under_mpirun(caller, spec);
  }
  complete(caller, reader, spec);
  if (!spec.array.is_none()) {
    reader.fault("--set array",
                 "cannot be used with 'run', which runs one job; submit an array instead: muster "
                 "submit single NAME --array 0-9 --follow -- CMD");
  }
  return spec;
}

namespace {

using job::RetryRule;

/// A number, or a word such as "train".
void read_priority(FlagReader& reader, job::Scheduling& scheduling) {
  if (!reader.has("--priority")) return;
  const std::string text = reader.text("--priority");
  if (const auto purpose = job::purpose_of(text)) {
    scheduling.purpose = *purpose;
    scheduling.priority.reset();
  } else if (const auto number = base::number_of<int>(text)) {
    scheduling.priority = number;
  } else {
    reader.fault("--priority",
                 "'" + text + "' is not a priority; give a number, train, build or inference");
  }
}

void read_interactive(FlagReader& reader, job::Scheduling& scheduling) {
  if (!reader.has("--interactive")) return;
  const bool is_for_something_else =
      reader.has("--priority") && !scheduling.priority && reader.text("--priority") != "build";
  if (is_for_something_else && !reader.is_at_fault("--priority")) {
    reader.fault("--interactive", "cannot be used with --priority " + reader.text("--priority"));
  }
  scheduling.purpose = job::Purpose::kBuild;
}

void read_preemptible(FlagReader& reader, job::Scheduling& scheduling) {
  const bool yes = reader.has("--preemptible");
  const bool no = reader.has("--no-preemptible");
  if (yes && no) reader.fault("--no-preemptible", "cannot be used with --preemptible");
  if (yes || no) scheduling.preemptible = yes;
}

/// "CODE=ACTION": splits at the last '=', because a pattern may contain '='; stores the action in
/// `rule`.
std::optional<std::string> split_rule(const std::string& flag, const std::string& text,
                                      RetryRule& rule, FlagReader& reader) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) {
    reader.fault(flag, "'" + text + "' has no action; write it as in " +
                           (flag == "--on-exit" ? "42=fail" : "'CUDA error=avoid-node'"));
    return std::nullopt;
  }
  const std::string action = text.substr(equals + 1);
  if (const auto known = job::retry_action_of(action)) {
    rule.action = *known;
    return text.substr(0, equals);
  }
  reader.fault(flag, record::not_a_choice(action, {"retry", "fail", "avoid-node"}));
  return std::nullopt;
}

void read_retry_flags(FlagReader& reader, std::vector<RetryRule>& rules) {
  for (const std::string& text : reader.texts("--on-exit")) {
    RetryRule rule;
    const auto code = split_rule("--on-exit", text, rule, reader);
    if (!code) continue;
    const size_t dash = code->find('-');
    rule.exit_code = base::number_of<int>(std::string_view(*code).substr(0, dash));
    if (dash != std::string::npos) {
      rule.last_exit_code = base::number_of<int>(std::string_view(*code).substr(dash + 1));
    }
    if (rule.exit_code && (dash == std::string::npos || rule.last_exit_code)) {
      rules.push_back(rule);
    } else {
      reader.fault("--on-exit", "'" + *code + "' is not an exit code");
    }
  }
  for (const std::string& text : reader.texts("--on-log")) {
    RetryRule rule;
    const auto pattern = split_rule("--on-log", text, rule, reader);
    if (!pattern) continue;
    rule.log_pattern = *pattern;
    if (pattern->empty()) {
      reader.fault("--on-log", "'" + text + "' has no pattern");
    } else {
      rules.push_back(rule);
    }
  }
}

}  // namespace

void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling) {
  read_priority(reader, scheduling);
  read_interactive(reader, scheduling);
  read_preemptible(reader, scheduling);
  read_retry_flags(reader, scheduling.retry_rules);
}

void read_workers(FlagReader& reader, job::JobSpec& spec) {
  const bool has_most = reader.has("--max-workers");
  if (!reader.has("--workers") && !has_most) {
    reader.fault("--workers", "is missing; give a number");
  }
  spec.workers = reader.number("--workers", 1, job::kMaxWorkers);
  if (!has_most) return;
  const int most = reader.number("--max-workers", spec.workers, job::kMaxWorkers);
  const bool differs =
      reader.has("--workers") && !reader.is_at_fault("--workers") && spec.workers != most;
  if (differs) {
    reader.fault("--max-workers",
                 std::to_string(most) + " is not the " + std::to_string(spec.workers) +
                     " of --workers; both set the largest number, so give only one");
  }
  spec.workers = most;
  if (!spec.scheduling.min_workers) {
    spec.scheduling.min_workers = job::fewest_workers(spec.kind);
  }
}

}  // namespace muster::cli::spec
