// experiments create and run: reads the flags, looks up machine types, sends files, submits the
// job, and follows it.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/spec/send_workspace.h"
#include "dialects/gradient/commands.h"
#include "dialects/gradient/experiment.h"
#include "dialects/gradient/gradient.h"
#include "workspace/sources.h"

namespace muster::dialects::gradient {

namespace {

/// A line without its backslash ends the command, so most of the required flags are missing, and the
/// rest of the command is in order.
std::string advice_on_lines(const Invocation& invocation, const Experiment& experiment) {
  constexpr int kMany = 3;
  if (invocation.words.back() == " ") {
    return "the command ends with a blank: a '\\' must be the last character of its line";
  }
  const bool was_cut =
      experiment.missing >= kMany &&
      invocation.reader.faults().size() == static_cast<size_t>(experiment.missing) &&
      invocation.words.size() > invocation.path.size();
  if (!was_cut) return "";
  return "'" + invocation.words.back() +
         "' is the last word of the command: is a '\\' missing at the end of its line?";
}

base::Error refusal(const Invocation& invocation, const Experiment& experiment) {
  base::Error error = faults_of(invocation);
  const std::string advice = advice_on_lines(invocation, experiment);
  if (!advice.empty()) error.advice = advice + "\n  " + error.advice;
  return error;
}

Result<void> look_machines_up(cli::Connection& connection, Experiment& experiment) {
  MUSTER_TRY(const job::MachineTypes types,
             connection.call([](api::Client& client) { return client.machine_types(); }));
  return use_machines(types, experiment);
}

job::Volume& volume_at(job::JobSpec& spec, const std::string& target) {
  return *std::find_if(spec.volumes.begin(), spec.volumes.end(),
                       [&](const job::Volume& volume) { return volume.target == target; });
}

/// Checks the project first, so that no files are read and sent in vain.
Result<void> check_project(cli::Connection& connection, const std::string& name) {
  const auto known = connection.call([&](api::Client& client) { return client.project(name); });
  if (known) return {};
  base::Error error = known.error();
  if (error.code == base::ErrorCode::kNotFound) {
    error.advice = "create it: gradient projects create --name " + base::shell_joined({name}) +
                   "; list the projects: gradient projects list";
  }
  return error;
}

Result<cli::spec::SentWorkspace> send(cli::Connection& connection, const std::string& project,
                                      const cli::spec::WorkspaceOptions& options) {
  auto sent = cli::spec::send_workspace(connection, project, options);
  if (sent || sent.error().code != base::ErrorCode::kNotFound) return sent;
  base::Error error = std::move(sent).error();
  // The missing object may be a folder, and kNotFound would mean a missing experiment.
  error.code = base::ErrorCode::kInvalid;
  return error;
}

Result<void> send_own_workspace(cli::Connection& connection, const Invocation& invocation,
                                Experiment& experiment) {
  if (!experiment.workspace) return {};
  job::JobSpec& spec = experiment.spec;
  const cli::spec::WorkspaceOptions& options = *experiment.workspace;
  MUSTER_TRY(const auto kind, workspace::kind_of(options.source, invocation.caller.folder));
  if (kind == workspace::SourceKind::kFolder) {
    note(
        "Archiving your working directory for upload as your experiment workspace...(See "
        "docs/from-gradient.md for more information.)");
  }
  MUSTER_TRY(const cli::spec::SentWorkspace sent, send(connection, spec.project, options));
  volume_at(spec, kWorkspaceFolder).source = sent.tree;
  if (!sent.commit.empty()) {
    spec.annotations[std::string(kAnnotation) + "workspaceCommit"] = sent.commit;
  }
  return {};
}

Result<void> send_datasets(cli::Connection& connection, Experiment& experiment) {
  job::JobSpec& spec = experiment.spec;
  for (const Dataset& dataset : experiment.datasets) {
    note("Sending data set '" + dataset.name + "'...");
    const cli::spec::WorkspaceOptions options{
        .source = {.where = dataset.uri, .flags = gradient_flag_names()},
        .use_gitignore = false,
        .program = "gradient"};
    MUSTER_TRY(const cli::spec::SentWorkspace sent, send(connection, spec.project, options));
    volume_at(spec, data_folder(dataset)).source = sent.tree;
  }
  return {};
}

/// Only admins of a project can set its secrets; other members can use existing secrets.
Result<void> store_password(cli::Connection& connection, const std::string& project,
                            const RegistryPassword& each) {
  const auto set = connection.call(
      [&](api::Client& client) { return client.set_secret(project, each.secret, each.password); });
  if (set) return {};
  if (set.error().code != base::ErrorCode::kRefused) return set.error();
  const auto known = connection.call([&](api::Client& client) { return client.secrets(project); });
  const bool is_there =
      known && std::any_of(known->begin(), known->end(), [&](const access::Secret& secret) {
        return secret.name == each.secret;
      });
  if (is_there) {
    note("gradient: " + each.flag + " is not stored: only an admin of project " + project +
         " can set its secrets; the stored password of secret '" + each.secret + "' is used");
    return {};
  }
  base::Error error = set.error();
  error.advice = "an admin of project " + project +
                 " can store the password for all members: muster secret set " + each.secret +
                 " --project " + project;
  return error;
}

Result<void> keep_passwords(cli::Connection& connection, const Experiment& experiment) {
  for (const RegistryPassword& each : experiment.passwords) {
    MUSTER_CHECK(store_password(connection, experiment.spec.project, each));
  }
  return {};
}

/// Submits under a free name: experiments may have equal names, jobs may not.
Result<job::Job> submit_under_free_name(cli::Connection& connection, const job::JobSpec& spec) {
  constexpr size_t kKeyLength = 26;  // 130 bits: collisions are practically impossible
  base::SystemRandom random;
  const std::string key = base::random_name(random, kKeyLength);
  return connection.call(
      [&](api::Client& client) { return client.submit(spec, key, {.name_suffix = true}); });
}

Result<void> announce(const cli::Connection& connection, const Experiment& experiment,
                      const job::Job& job) {
  const std::string done = experiment.starts ? "created and started" : "created";
  MUSTER_CHECK(print_line("New experiment " + done + " with ID: " + job.id));
  if (connection.is_shared()) {
    MUSTER_CHECK(
        print_line(connection.url() + "/projects/" + job.spec.project + "/experiments/" + job.id));
  }
  if (!experiment.starts) note("  to start it: gradient experiments start --id " + job.id);
  return {};
}

Result<int> create(cli::Connection& connection, const Invocation& invocation,
                   Experiment& experiment) {
  MUSTER_CHECK(check_project(connection, experiment.spec.project));
  MUSTER_CHECK(look_machines_up(connection, experiment));
  MUSTER_CHECK(keep_passwords(connection, experiment));
  MUSTER_CHECK(send_own_workspace(connection, invocation, experiment));
  MUSTER_CHECK(send_datasets(connection, experiment));
  // Constructed before the job is submitted, so that no Ctrl-C is lost between submitting and
  // following.
  std::optional<cli::Interrupts> interrupts;
  if (experiment.follows) interrupts.emplace();
  MUSTER_TRY(const job::Job job, submit_under_free_name(connection, experiment.spec));
  connection.set_project(job.spec.project);
  MUSTER_CHECK(announce(connection, experiment, job));
  return experiment.follows ? follow_logs(connection, job.id) : cli::kExitDone;
}

}  // namespace

Result<int> create_or_run(Invocation& invocation) {
  Experiment experiment = read_experiment(invocation.path, invocation.reader, invocation.caller);
  if (!invocation.reader.ok()) return refusal(invocation, experiment);
  for (const std::string& text : experiment.notes) note("gradient: " + text);
  // Only connection errors get Gradient's message. Later, a missing object is a project or a
  // folder, and Muster's message names it.
  std::optional<Result<int>> outcome;
  auto reached =
      with_server(invocation, kFetch, "Server", [&](cli::Connection& connection) -> Result<int> {
        outcome = create(connection, invocation, experiment);
        return cli::kExitDone;
      });
  return outcome ? *std::move(outcome) : reached;
}

}  // namespace muster::dialects::gradient
