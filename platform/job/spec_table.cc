#include "job/spec_table.h"

#include "base/text.h"
#include "base/units.h"
#include "job/array.h"
#include "job/checker.h"
#include "record/difference.h"
#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Input;
using record::Json;
using record::Need;
using record::Offer;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kImagePattern =
    "^((([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|"
    "\\[[0-9A-Fa-f:]+\\])(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|"
    "655[0-2][0-9]|6553[0-5]))?/)?[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*(/[a-z0-9]+"
    "((\\.|__?|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+"
    "((\\.|__?|-+)[a-z0-9]+)*:[0-9a-f]{32,})?)?$";
constexpr const char* kUserPattern =
    "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?)?$";
constexpr const char* kVariableNames =
    R"({"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}})";

// Helpers for writing values.

/// A command as a single text is run by the shell.
Json shell_command(const Input& text) {
  if (text.is_typed("")) {
    text.note("is empty; give a command");
    return nullptr;
  }
  return {"sh", "-c", text.value.text()};
}

Json secret_by_name(const Input& text) {
  return {{"name", text.value.text()}};
}

Json dependency_in_short(const Input& text) {
  const std::string written(text.value.text());
  const auto dependency = parse_dependency(written);
  if (!dependency) {
    text.note("'" + written + "' " + kDependencyForms);
    return nullptr;
  }
  return {{"job", dependency->job}, {"condition", to_string(dependency->condition)}};
}

Json array_in_short(const Input& text) {
  const auto array = array_of(text.value.text());
  if (!array) {
    text.note(array.error().what);
    return nullptr;
  }
  Json written{{"indexes", array->indexes}};
  if (array->max_running > 0) written["max_running"] = std::to_string(array->max_running);
  return written;
}

Json volume_in_short(const Input& text) {
  const std::string written(text.value.text());
  const auto volume = parse_volume(written);
  if (!volume) {
    text.note("'" + written + "' " + kVolumeForms);
    return nullptr;
  }
  return {{"kind", to_string(volume->kind)},
          {"source", volume->source},
          {"target", volume->target},
          {"read_only", volume->read_only ? "true" : "false"}};
}

/// GPUs are whole; a value such as 0.5 stands for a fraction of one GPU.
Json whole_gpus(const Input& text) {
  std::string written(text.value.text());
  const auto milli = base::parse_milli(written);
  if (milli && *milli > 0 && *milli < 1000) {
    text.note("'" + written + "' is not a whole number; a part of one GPU is gpu_share: " +
              written + ", or --gpu-share " + written);
  }
  return written;
}

/// A secret without a variable or file becomes the variable of its name.
void complete_secret(const Input& input, void* record) {
  auto& use = *static_cast<SecretUse*>(record);
  const auto is_given = [&](const char* key) {
    const record::Value* found = input.value.find(key);
    return found != nullptr && !found->is_null();
  };
  if (!is_given("variable") && !is_given("file")) use.variable = use.name;
}

std::vector<record::Row> rows_of_programs() {
  return {
      field<&JobSpec::image>(
          "image",
          {.help = "The container image of the tasks. An engine that runs no images runs the "
                   "machine's own programs instead, or the command that the server's configuration "
                   "names for this image.",
           .max_length = 512,
           .pattern = kImagePattern,
           .flag = {.name = "--image",
                    .letter = "-i",
                    .value = "IMAGE",
                    .help = "container image of the tasks; engines that run no images use the "
                            "replacement that the server configures"}}),
      field<&JobSpec::user>(
          "user", {.help = "The user of the tasks: `USER` or `USER:GROUP`, each a name or a number "
                           "of the image. Empty: the image's own user. Requires an image.",
                   .pattern = kUserPattern,
                   .flag = {.name = "--user",
                            .value = "USER[:GROUP]",
                            .help = "user that the tasks run as (default: the image's own user)"}}),
      field<&JobSpec::registry>("registry",
                                {.help = "The login for the image's registry. Requires an image.",
                                 .flag = {.name = "--registry-username", .by_hand = true},
                                 .gives_inner_flags = true}),
      field<&JobSpec::container>(
          "container",
          {.help = "The isolation of its containers from their hosts. Requires an image.",
           .gives_inner_flags = true}),
      field<&JobSpec::slurm>("slurm", {.help = "Options for Slurm, if the server runs jobs there.",
                                       .gives_inner_flags = true}),
      field<&JobSpec::kubernetes>("kubernetes",
                                  {.help = "Options for Kubernetes, if the server runs jobs there.",
                                   .gives_inner_flags = true}),
      field<&JobSpec::launch>("launch",
                              {.help = "Kind `mpi`: how the launcher starts ranks in the workers.",
                               .flag = {.name = "--launch",
                                        .value = "HOW",
                                        .help = "how ranks are started: ssh, agent (needs no "
                                                "sshd), srun (on Slurm) or auto (default)",
                                        .kinds = "mpi run"}}),
      field<&JobSpec::replaces_entrypoint>(
          "replaces_entrypoint",
          {.help = "The command replaces the image's entry point; otherwise it is passed to the "
                   "entry point. False requires an image.",
           .flag = {.name = "--keep-entrypoint",
                    .help = "pass the command to the image's entry point (default: run it instead)",
                    .means = "false"}}),
      field<&JobSpec::command>(
          "command",
          {.help = "The program and its arguments: of the single task, of the launcher, or of "
                   "every worker of kind `grpc` or `torch`. Empty: the command of the image. The "
                   "first word is not empty, and no word contains a NUL byte.",
           .need = Need::kOnWire,
           .flag = {.name = "CMD", .by_hand = true},
           .shorthand = shell_command}),
      field<&JobSpec::arguments>("arguments", {.help = "Arguments after the command."}),
      field<&JobSpec::worker_command>(
          "worker_command", {.help = "Kind `mpi`: the command of the workers, beside their sshd.",
                             .shorthand = shell_command}),
  };
}

std::vector<record::Row> rows_of_tasks() {
  return {
      field<&JobSpec::workers>("workers",
                               {.help = "The number of workers, without the launcher, chief or "
                                        "master. Kind `mpi`: 1 to 1000; kind `single`: 0.",
                                .sent = Sent::kAlways,
                                .least = 0,
                                .most = 1000,
                                .flag = {.name = "--workers", .by_hand = true}}),
      field<&JobSpec::slots_per_worker>("slots_per_worker",
                                        {.help = "The number of ranks for each worker.",
                                         .sent = Sent::kAlways,
                                         .least = 1,
                                         .most = 1024,
                                         .flag = {.name = "--slots-per-worker",
                                                  .value = "N",
                                                  .help = "ranks for each worker (default: 1)",
                                                  .kinds = "mpi torch"}}),
      field<&JobSpec::resources>("resources", {.sent = Sent::kAlways, .gives_inner_flags = true}),
      field<&JobSpec::leader>(
          "leader",
          {.help = "The launcher (without a command of its own), the chief or the master."}),
      field<&JobSpec::leader_slots>("leader_slots",
                                    {.help = "Kind `mpi`: the number of ranks for the launcher, "
                                             "which is then last in the hostfile.",
                                     .least = 0,
                                     .most = 1024}),
      field<&JobSpec::chief_is_worker>(
          "chief_is_worker",
          {.help = "Kind `grpc`: TF_CONFIG lists no chief, and the chief as worker 0.",
           .flag = {.name = "--chief-is-worker",
                    .help = "list the chief as worker 0 in TF_CONFIG, as programs without a chief "
                            "expect",
                    .kinds = "grpc"}}),
      field<&JobSpec::success>("success",
                               {.help = "Kinds `grpc` and `torch`: the tasks that must succeed.",
                                .flag = {.name = "--success",
                                         .value = "WHICH",
                                         .help = "tasks that must succeed: leader (the "
                                                 "chief or master) or all",
                                         .kinds = "grpc torch"}}),
      field<&JobSpec::allow_launcher_only>(
          "allow_launcher_only",
          {.help = "Kind `mpi`: the job may succeed even if its command started no process in a "
                   "worker.",
           .flag = {.name = "--allow-launcher-only",
                    .help = "let the job succeed even if no worker ran a rank",
                    .kinds = "mpi run"}}),
      field<&JobSpec::parameter_servers>(
          "parameter_servers", {.help = "Kind `grpc`: the number of parameter servers, at most "
                                        "1000 together with the workers.",
                                .least = 0,
                                .most = 1000,
                                .flag = {.name = "--parameter-servers",
                                         .value = "N",
                                         .help = "number of parameter servers (default: 0)",
                                         .kinds = "grpc"}}),
      field<&JobSpec::parameter_server>(
          "parameter_server", {.flag = {.name = "--parameter-server-command", .by_hand = true}}),
      field<&JobSpec::evaluators>(
          "evaluators",
          {.help = "Kind `grpc`: the tasks that evaluate checkpoints beside the cluster.",
           .least = 0,
           .most = 1,
           .flag = {.name = "--evaluators", .by_hand = true}}),
      field<&JobSpec::evaluator>("evaluator",
                                 {.flag = {.name = "--evaluator-command", .by_hand = true}}),
      field<&JobSpec::volumes>("volumes",
                               {.help = "Files and folders that are mounted in the tasks.",
                                .most_items = 100,
                                .flag = {.name = "--volume", .by_hand = true},
                                .shorthand = volume_in_short}),
  };
}

std::vector<record::Row> rows_of_marks() {
  return {
      field<&JobSpec::held>(
          "held",
          {.help = "The job is suspended from the beginning, until `resume`.",
           .flag = {.name = "--hold", .help = "do not start the job until 'muster resume'"}}),
      field<&JobSpec::input>(
          "input",
          {.help = "The program of the launcher, chief, master or single task reads the input of "
                   "attached clients; otherwise its input is empty.",
           .flag = {.name = "--stdin", .help = "let the program read input from 'muster attach'"}}),
      field<&JobSpec::terminal>(
          "terminal",
          {.help = "That program has a terminal, which combines its standard output and error.",
           .flag = {.name = "--tty", .help = "give the program a terminal, for 'muster attach'"}}),
      field<&JobSpec::keep_for>(
          "keep_for",
          {.help = "How long the ended job is kept, with its logs and artifacts. Absent: the "
                   "server's setting.",
           .least = 0,
           .most = 3650 * kDayInMs,
           .flag = {.name = "--keep-for",
                    .value = "TIME",
                    .help =
                        "remove the job this long after its end (default: the server's setting)"}}),
      field<&JobSpec::labels>(
          "labels",
          {.help =
               "Labels for selecting jobs; a label with an empty value is a tag. A name is 1 to "
               "128 bytes of text without `=`, a value at most 256 bytes; at most 64 labels.",
           .schema = R"({"additionalProperties": {"type": "string", "maxLength": 256},
                         "propertyNames": {"minLength": 1, "maxLength": 128}})",
           .most_items = 64,
           .flag = {.name = "--label", .by_hand = true}}),
      field<&JobSpec::annotations>(
          "annotations",
          {.help = "Names with values that are stored with the job: at most 64 KiB together.",
           .schema = R"({"propertyNames": {"minLength": 1, "maxLength": 128}})"}),
  };
}

std::vector<record::Row> rows_of_places_and_times() {
  return {
      field<&JobSpec::scheduling>("scheduling", {.sent = Sent::kAlways, .gives_inner_flags = true}),
      field<&JobSpec::after>("after", {.help = "The jobs that must have ended before it starts.",
                                       .most_items = 100,
                                       .flag = {.name = "--after", .by_hand = true},
                                       .shorthand = dependency_in_short}),
      field<&JobSpec::array>("array", {.help = "Makes an array: many jobs from this spec.",
                                       .flag = {.name = "--array", .by_hand = true},
                                       .shorthand = array_in_short}),
      field<&JobSpec::environment>("environment", {.sent = Sent::kAlways,
                                                   .schema = kVariableNames,
                                                   .flag = {.name = "--env", .by_hand = true}}),
      field<&JobSpec::secrets>("secrets", {.sent = Sent::kAlways,
                                           .flag = {.name = "--secret", .by_hand = true},
                                           .shorthand = secret_by_name}),
      field<&JobSpec::folder>(
          "folder",
          {.help = "Working directory of every task: an absolute path.",
           .need = Need::kOnWire,
           .flag = {.name = "--folder",
                    .value = "DIR",
                    .help = "working folder of every task (default: the current one)",
                    .offer = Offer::kFolders}},
          As::kText),
      field<&JobSpec::sandbox>("sandbox",
                               {.sent = Sent::kAlways,
                                .flag = {.name = "--sandbox",
                                         .value = "KIND",
                                         .help = "isolation of the tasks: bubblewrap or none"}}),
      field<&JobSpec::start_timeout>(
          "start_timeout",
          {.help = "The time until every worker must answer.",
           .sent = Sent::kAlways,
           .least = 1,
           .most = kDayInMs,
           .flag = {.name = "--start-timeout",
                    .value = "TIME",
                    .help = "time in which every worker must answer (default: 30s)"}}),
      field<&JobSpec::grace>(
          "grace",
          {.help = "The time between SIGTERM and SIGKILL.",
           .sent = Sent::kAlways,
           .least = 0,
           .most = kDayInMs,
           .flag =
               {.name = "--grace",
                .value = "TIME",
                .help =
                    "time between SIGTERM and SIGKILL when the job is stopped (default: 10s)"}}),
  };
}

std::vector<record::Row> rows_of_job_spec() {
  std::vector<record::Row> rows = {
      field<&JobSpec::name>(
          "name", {.help = "1 to 48 of a-z, 0-9 and `-`, a letter or digit at both ends; unique in "
                           "its project.",
                   .need = Need::kRequired,
                   .pattern = "^[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?$",
                   .flag = {.name = "NAME", .by_hand = true}}),
      field<&JobSpec::project>("project", {.sent = Sent::kAlways,
                                           .pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
                                           .flag = {.name = "--project",
                                                    .value = "NAME",
                                                    .help = "project whose quota the job uses",
                                                    .offer = Offer::kProjects}}),
      field<&JobSpec::kind>("kind", {.sent = Sent::kAlways}),
  };
  for (auto* more : {rows_of_programs, rows_of_tasks, rows_of_marks, rows_of_places_and_times}) {
    for (record::Row& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::optional<Volume> parse_volume(std::string_view text) {
  std::vector<std::string> parts = base::split(text, ':');
  Volume volume;
  if (parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw")) {
    volume.read_only = parts[2] == "ro";
    parts.pop_back();
  }
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  volume.target = parts[1];
  constexpr std::string_view kStorage = "storage/";
  if (parts[0] == "artifacts") {
    volume.kind = Volume::Kind::kArtifacts;
  } else if (parts[0].starts_with(kStorage)) {
    volume.kind = Volume::Kind::kStorage;
    volume.source = parts[0].substr(kStorage.size());
  } else {
    volume.source = parts[0];
  }
  return volume;
}

std::optional<Dependency> parse_dependency(std::string_view text) {
  Dependency dependency;
  const size_t colon = text.find(':');
  dependency.job = text.substr(0, colon);
  if (dependency.job.empty()) return std::nullopt;
  if (colon == std::string_view::npos) return dependency;
  const auto condition = dependency_condition_of(text.substr(colon + 1));
  if (!condition) return std::nullopt;
  dependency.condition = *condition;
  return dependency;
}

const Table& table_of(const JobSpec*) {
  static const Table table =
      record::table<JobSpec>("JobSpec", rows_of_job_spec(),
                             "A job to submit. Absent and null fields have their defaults.");
  return table;
}

const Table& table_of(const Resources*) {
  static const Table table = record::table<Resources>(
      "Resources",
      {field<&Resources::gpus>(
           "gpus", {.help = "The number of whole GPUs of each task.",
                    .sent = Sent::kAlways,
                    .least = 0,
                    .most = 1024,
                    .flag = {.name = "--gpus", .value = "N", .help = "GPUs of each worker"},
                    .shorthand = whole_gpus}),
       field<&Resources::gpu_share_milli>(
           "gpu_share",
           {.help = "A part of one GPU, such as 0.5; 0: none. Cannot be used with `gpus`.",
            .sent = Sent::kAlways,
            .schema = R"({"minimum": 0, "maximum": 0.999, "multipleOf": 0.001})",
            .flag = {.name = "--gpu-share",
                     .value = "PART",
                     .help = "instead of --gpus: a part of one shared GPU, as in 0.5"}},
           As::kShare),
       field<&Resources::gpu_memory_bytes>(
           "gpu_memory",
           {.help = "The part of one GPU that has this memory; 0: none. Cannot be used with `gpus` "
                    "and `gpu_share`.",
            .sent = Sent::kAlways,
            .least = 0,
            .most = kMaxMemory,
            .flag = {.name = "--gpu-memory",
                     .value = "SIZE",
                     .help =
                         "instead of --gpus: the part of one GPU that has this memory, as in 8G"}},
           As::kBytes),
       field<&Resources::cpu_milli>(
           "cpus",
           {.help = "The number of CPU cores of each task, with at most three decimals.",
            .sent = Sent::kAlways,
            .least = 0,
            .most = kMaxCpuMilli / 1000,
            .schema = R"({"multipleOf": 0.001})",
            .flag = {.name = "--cpus",
                     .value = "N",
                     .help = "CPU cores of each worker, as in 4, 0.5 or 500m"}},
           As::kCpus),
       field<&Resources::memory_bytes>("memory",
                                       {.sent = Sent::kAlways,
                                        .least = 0,
                                        .most = kMaxMemory,
                                        .flag = {.name = "--memory",
                                                 .value = "SIZE",
                                                 .help = "memory of each worker, as in 16G"}},
                                       As::kBytes)},
      "The resources of a task on a node: of each worker, or of the single task. 0: no claim.");
  return table;
}

const Table& table_of(const SecretUse*) {
  static const Table table =
      record::table<SecretUse>(
          "SecretUse",
          {field<&SecretUse::name>(
               "name", {.help = "The name of a secret of the project.", .need = Need::kRequired}),
           field<&SecretUse::variable>("variable",
                                       {.help = "The environment variable; empty: none."}),
           field<&SecretUse::file>("file",
                                   {.help = "A path below /generated/secrets; empty: no file."})},
          "A secret for the tasks: as a variable, as a file, or both.")
          .with(complete_secret);
  return table;
}

const Table& table_of(const Dependency*) {
  static const Table table = record::table<Dependency>(
      "Dependency",
      {field<&Dependency::job>("job",
                               {.help = "The name or id of a job or array of the same project.",
                                .need = Need::kRequired}),
       field<&Dependency::condition>("condition"),
       field<&Dependency::by_member>(
           "by_member", {.help = "Both are arrays: each member waits for the member with its "
                                 "index."})},
      "Another job that must have ended before the job starts.");
  return table;
}

const Table& table_of(const ArraySpec*) {
  static const Table table = record::table<ArraySpec>(
      "ArraySpec",
      {field<&ArraySpec::indexes>(
           "indexes", {.help = "Numbers and ranges: `0-99`, `1,3,5-7`, `0-20:5`. Empty: one index "
                               "for each of the lines, from 0."}),
       field<&ArraySpec::lines>(
           "lines", {.help = "One text for each index, in their order: MUSTER_ARRAY_LINE of the "
                             "member. If it is a JSON object, its fields are variables as well."}),
       field<&ArraySpec::max_running>(
           "max_running",
           {.help = "The most members that run at the same time; 0: no limit.", .least = 0}),
       field<&ArraySpec::max_failures>(
           "max_failures",
           {.help = "When more members than this have failed, the array is stopped.", .least = 0})},
      "The members of an array: jobs that differ in their index and line.");
  return table;
}

const Table& table_of(const Volume*) {
  static const Table table = record::table<Volume>(
      "Volume",
      {field<&Volume::kind>("kind", {.need = Need::kOnWire}),
       field<&Volume::source>(
           "source",
           {.help = "`host_path`: the absolute path of a file or folder of the node. `tree`: the "
                    "id of uploaded files, of which each job has a copy; empty: an empty folder. "
                    "`storage`: the name of a folder of the project, which outlives its jobs. "
                    "`artifacts`, a folder that is kept as long as the job: empty."},
           As::kText),
       field<&Volume::target>(
           "target",
           {.help = "An absolute path without `.`, `..` and a `/` at its end; not `/`, `/proc`, "
                    "`/sys`, `/dev` or `/generated`, or below these.",
            .need = Need::kOnWire},
           As::kText),
       field<&Volume::read_only>("read_only")},
      "A file or folder that is mounted in the tasks.");
  return table;
}

const Table& table_of(const RoleSpec*) {
  static const Table table = record::table<RoleSpec>(
      "RoleSpec",
      {field<&RoleSpec::image>("image",
                               {.help = "The image of the role. Empty: the image of the job.",
                                .max_length = 512,
                                .pattern = kImagePattern}),
       field<&RoleSpec::user>("user", {.help = "The user of the role's tasks, if the role has an "
                                               "image. Empty: the image's own user.",
                                       .pattern = kUserPattern}),
       field<&RoleSpec::registry>(
           "registry", {.help = "The login for the registry, if the role has an image."}),
       field<&RoleSpec::command>(
           "command",
           {.help = "The command of the role. Empty: the job's command, with its arguments. Not "
                    "for the launcher of kind `mpi`, which runs the job's command.",
            .shorthand = shell_command}),
       field<&RoleSpec::arguments>(
           "arguments",
           {.help =
                "Arguments after the command; if `command` is empty, after the job's arguments."}),
       field<&RoleSpec::resources>("resources",
                                   {.help = "The resources of each task of the role, which do not "
                                            "default to those of the job."}),
       field<&RoleSpec::environment>(
           "environment",
           {.help = "Variables in addition to those of the job.", .schema = kVariableNames})},
      "The program and resources of the tasks of one role, where they differ from the workers'.");
  return table;
}

std::vector<std::string> differing_fields(const JobSpec& left, const JobSpec& right) {
  std::vector<std::string> fields;
  for (record::Difference& difference : record::differences(left, right)) {
    fields.push_back(std::move(difference.path));
  }
  return fields;
}

}  // namespace muster::job
