#include "dialects/gradient/experiment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "dialects/gradient/gradient.h"
#include "job/validate.h"
#include "record/input.h"

namespace muster::dialects::gradient {

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

/// Reads the flags on roles and commands. Missing flags are counted.
class Shape {
 public:
  Shape(cli::FlagReader& reader, Experiment& experiment)
      : reader_(reader), experiment_(experiment), spec_(experiment.spec) {}

  void read_single() {
    experiment_.type = Experiment::Type::kSingle;
    keep_type("single");
    spec_.kind = job::Kind::kSingle;
    spec_.image = needed("--container");
    experiment_.worker_machine = needed("--machineType");
    spec_.command = shell_command(needed("--command"));
  }

  void read_several() {
    const std::string type = experiment_type();
    spec_.image = needed("--workerContainer");
    experiment_.worker_machine = needed("--workerMachineType");
    if (type == "MPI") return read_mpi();
    if (type == "GRPC") return read_grpc();
    count("--workerCount");
    // The type decides whose command is missing, so no more faults are reported.
    spec_.command = shell_command("");
  }

 private:
  void read_mpi() {
    experiment_.type = Experiment::Type::kMpi;
    keep_type("MPI");
    spec_.kind = job::Kind::kMpi;
    spec_.workers = count("--workerCount");
    read_worker_command();
    spec_.leader.image = needed("--masterContainer");
    experiment_.leader_machine = needed("--masterMachineType");
    spec_.command = master_command(needed("--masterCommand"));
    const std::string masters = needed("--masterCount");
    if (!masters.empty() && masters != "1") {
      reader_.fault("--masterCount",
                    "'" + masters + "' is invalid: an MPI experiment has one master; give 1");
    }
    note_others("--parameterServer", "an MPI experiment has no parameter servers");
  }

  /// The workers of an MPI experiment only wait for the master: most commands are a sleep.
  void read_worker_command() {
    const std::string text = reader_.text("--workerCommand");
    if (text.empty()) {
      spec_.annotations[std::string(kAnnotation) + "workerCommand"] = "sleep infinity";
    } else if (!is_endless_sleep(text)) {
      spec_.worker_command = shell_command(text);
    }
  }

  void read_grpc() {
    experiment_.type = Experiment::Type::kGrpc;
    keep_type("GRPC");
    spec_.kind = job::Kind::kGrpc;
    // The first worker is the chief.
    spec_.workers = count("--workerCount") - 1;
    spec_.command = shell_command(needed("--workerCommand"));
    experiment_.leader_machine = experiment_.worker_machine;
    spec_.parameter_server.image = needed("--parameterServerContainer");
    experiment_.parameter_server_machine = needed("--parameterServerMachineType");
    spec_.parameter_server.command = shell_command(needed("--parameterServerCommand"));
    spec_.parameter_servers = count("--parameterServerCount");
    note_others("--master", "a GRPC experiment has no master: its first worker is the chief");
  }

  /// Empty, with a fault, if the flag is missing or blank.
  std::string needed(const std::string& flag) {
    if (!reader_.has(flag)) {
      // If the flag has its own fault, such as a missing value, no other fault is reported.
      if (!reader_.is_at_fault(flag)) reader_.fault(flag, "is missing");
      ++experiment_.missing;
      return "";
    }
    std::string text = reader_.text(flag);
    if (text.find_first_not_of(" \t\n") != std::string::npos) return text;
    reader_.fault(flag, "is empty");
    return "";
  }

  /// 1 if the value is invalid, so that it causes no other fault.
  int count(const std::string& flag) {
    if (needed(flag).empty()) return 1;
    return reader_.number_between(flag, 1, 1, job::kMaxWorkers);
  }

  /// "MPI", "GRPC", or empty with a fault.
  std::string experiment_type() {
    const std::string by_name = type_by_name();
    const std::string by_id = type_by_id();
    if (!by_name.empty() && !by_id.empty() && by_name != by_id) {
      reader_.fault("--experimentTypeId",
                    "means " + by_id + ", but --experimentType is " + by_name);
    }
    const bool is_given = reader_.has("--experimentType") || reader_.has("--experimentTypeId");
    if (!is_given && !reader_.is_at_fault("--experimentType")) {
      reader_.fault("--experimentType", "is missing; give GRPC or MPI");
      ++experiment_.missing;
    }
    return by_name.empty() ? by_id : by_name;
  }

  std::string type_by_name() {
    if (!reader_.has("--experimentType")) return "";
    std::string type = reader_.text("--experimentType");
    std::transform(type.begin(), type.end(), type.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    if (type == "MPI" || type == "GRPC") return type;
    reader_.fault("--experimentType",
                  record::not_a_choice(reader_.text("--experimentType"), {"GRPC", "MPI"}));
    return "";
  }

  std::string type_by_id() {
    if (!reader_.has("--experimentTypeId")) return "";
    const std::string id = reader_.text("--experimentTypeId");
    if (id == "2") return "GRPC";
    if (id == "3") return "MPI";
    reader_.fault("--experimentTypeId",
                  "'" + id + "' is invalid: expected one of 2 (GRPC), 3 (MPI)" +
                      (id == "1" ? "; 1 is 'gradient experiments create singlenode'" : ""));
    return "";
  }

  void note_others(const std::string& role, const std::string& why) {
    for (const char* const part :
         {"Container", "MachineType", "Command", "Count", "ContainerUser", "RegistryContainerUser",
          "RegistryUsername", "RegistryPassword", "RegistryUrl"}) {
      if (!reader_.has(role + part)) continue;
      experiment_.notes.push_back(role + part + " has no effect: " + why);
    }
  }

  void keep_type(const std::string& type) {
    spec_.annotations[std::string(kAnnotation) + "experimentType"] = type;
  }

  cli::FlagReader& reader_;
  Experiment& experiment_;
  job::JobSpec& spec_;
};

/// The field of a spec and the flag that sets it.
std::string flag_of_field(const std::string& field, const Experiment& experiment) {
  const bool is_single = experiment.type == Experiment::Type::kSingle;
  const bool is_mpi = experiment.type == Experiment::Type::kMpi;
  return cli::flag_of_field(
      field,
      {{"name", "--name"},
       {"project", "--projectId"},
       {"image", is_single ? "--container" : "--workerContainer"},
       {"user", is_single ? "--containerUser" : "--workerContainerUser"},
       {"leader.user", "--masterContainerUser"},
       {"parameter_server.user", "--parameterServerContainerUser"},
       {"registry.server", is_single ? "--registryUrl" : "--workerRegistryUrl"},
       {"leader.registry.server", "--masterRegistryUrl"},
       {"parameter_server.registry.server", "--parameterServerRegistryUrl"},
       {"registry", is_single ? "--registryUsername" : "--workerRegistryUsername"},
       {"leader.registry", "--masterRegistryUsername"},
       {"parameter_server.registry", "--parameterServerRegistryUsername"},
       {"command", is_single ? "--command" : (is_mpi ? "--masterCommand" : "--workerCommand")},
       {"worker_command", "--workerCommand"},
       {"leader.image", "--masterContainer"},
       {"workers", "--workerCount"},
       {"parameter_servers", "--parameterServerCount"},
       {"parameter_server.image", "--parameterServerContainer"},
       {"parameter_server.command", "--parameterServerCommand"},
       {"volumes[2]", "--artifactDirectory"},
       {"volumes", "--datasetName"},
       {"labels", "--tag"},
       {"environment", "--experimentEnv"},
       {"secrets", "--experimentEnv"},
       {"folder", "--workingDirectory"}});
}

/// Reports the faults that a server would find, before files are sent.
void check(const Experiment& experiment, cli::FlagReader& reader) {
  // An invalid value was replaced; faults of the replacement are not the user's and are not
  // reported.
  const cli::FlagReader unread = reader;
  for (const Fault& fault : job::validate(experiment.spec)) {
    const std::string flag = flag_of_field(fault.field, experiment);
    if (!unread.is_at_fault(flag)) reader.fault(flag, fault.what);
  }
}

}  // namespace

Experiment read_experiment(const std::vector<std::string>& path, cli::FlagReader& reader,
                           const cli::Caller& caller) {
  Experiment experiment;
  experiment.starts = path.at(1) == "run";
  experiment.follows = experiment.starts && !reader.has("--no-logs");
  experiment.api_key = reader.text("--apiKey");
  experiment.name = reader.text("--name");
  job::JobSpec& spec = experiment.spec;
  spec.name = job_name_of(experiment.name);
  if (!caller.project.empty()) spec.project = caller.project;
  spec.project = reader.text("--projectId", spec.project);
  spec.held = !experiment.starts;
  if (reader.has("--isPreemptible")) spec.scheduling.preemptible = true;
  Shape shape(reader, experiment);
  if (path.at(2) == "singlenode") {
    shape.read_single();
  } else {
    shape.read_several();
  }
  read_containers(path, reader, experiment);
  read_environment(reader, spec);
  read_places(reader, experiment);
  read_datasets(reader, experiment);
  read_tags(reader, spec);
  read_model(reader, experiment);
  keep_words(path, reader, experiment);
  check(experiment, reader);
  return experiment;
}

base::Result<void> use_machines(const job::MachineTypes& types, Experiment& experiment) {
  const bool is_single = experiment.type == Experiment::Type::kSingle;
  const bool is_mpi = experiment.type == Experiment::Type::kMpi;
  job::JobSpec& spec = experiment.spec;
  std::vector<Fault> faults;
  std::string advice;
  const auto look_up = [&](const std::string& name, const std::string& flag) {
    if (name.empty()) return job::Resources{};
    const auto found = job::find_machine_type(types, name);
    if (found) return found->resources;
    const auto same = [&](const Fault& fault) { return fault.field == flag; };
    advice = found.error().advice;
    // The chief has the machine type of the workers.
    if (std::none_of(faults.begin(), faults.end(), same)) {
      faults.push_back({.field = flag, .what = found.error().what});
    }
    return job::Resources{};
  };
  spec.resources =
      look_up(experiment.worker_machine, is_single ? "--machineType" : "--workerMachineType");
  spec.leader.resources =
      look_up(experiment.leader_machine, is_mpi ? "--masterMachineType" : "--workerMachineType");
  spec.parameter_server.resources =
      look_up(experiment.parameter_server_machine, "--parameterServerMachineType");
  if (is_mpi) {
    spec.slots_per_worker = std::max(1, spec.resources.gpus);
    spec.leader_slots = spec.leader.resources.gpus;
  }
  if (faults.empty()) return {};
  if (faults.size() == 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = faults.front().field + ": " + faults.front().what,
                 .advice = advice};
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = std::to_string(faults.size()) + " machine types are unknown",
               .advice = advice,
               .faults = std::move(faults)};
}

std::string job_name_of(const std::string& name) {
  // Leaves room for "-999", within the 48 characters of a job's name.
  constexpr size_t kLongest = 44;
  std::string result;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool fits = byte < 0x80 && std::isalnum(byte) != 0;
    if (fits) {
      result += static_cast<char>(std::tolower(byte));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
    if (result.size() == kLongest) break;
  }
  while (result.ends_with('-')) result.pop_back();
  return result.empty() ? "experiment" : result;
}

namespace {

constexpr std::string_view kSpace = " \t\n";
// Characters that a shell interprets: expansions, redirections, and separators of commands.
constexpr std::string_view kSyntax = "|&;<>()$`\\*?[]#~!{}\n";
constexpr std::string_view kSyntaxInQuotes = "$`\\";

bool is_launcher(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  constexpr std::array<std::string_view, 3> kNames{"mpirun", "mpiexec", "orterun"};
  // Distributions have names such as mpirun.openmpi and mpiexec.hydra.
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) {
    return name == known || name.starts_with(std::string(known) + ".");
  });
}

}  // namespace

std::vector<std::string> shell_command(const std::string& text) {
  return {"sh", "-c", text};
}

std::vector<std::string> master_command(const std::string& text) {
  auto words = plain_words(text);
  if (words && !words->empty() && is_launcher(words->front())) return *std::move(words);
  return shell_command(text);
}

std::optional<std::vector<std::string>> plain_words(std::string_view text) {
  text = base::trimmed(text, kSpace);
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == ' ' || letter == '\t') {
      in_word = false;
      continue;
    }
    if (kSyntax.find(letter) != std::string_view::npos) return std::nullopt;
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter != '\'' && letter != '"') {
      words.back() += letter;
      continue;
    }
    const size_t end = text.find(letter, i + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view quoted = text.substr(i + 1, end - i - 1);
    if (letter == '"' && quoted.find_first_of(kSyntaxInQuotes) != std::string_view::npos) {
      return std::nullopt;
    }
    words.back() += quoted;
    i = end;
  }
  return words;
}

bool is_endless_sleep(std::string_view text) {
  const auto words = plain_words(text);
  return words && *words == std::vector<std::string>{"sleep", "infinity"};
}

}  // namespace muster::dialects::gradient
