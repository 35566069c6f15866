// submit and run: hand a job over, and see it through where that was asked for.
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "api/forecast_wire.h"
#include "api/wire.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/content_flags.h"
#include "cli/follow.h"
#include "cli/job_view.h"
#include "cli/report.h"
#include "cli/spec_file.h"
#include "cli/spec_flags.h"
#include "cli/terminal.h"
#include "cli/waiting_view.h"
#include "cli/yaml_document.h"

namespace muster::cli {

namespace {

Result<std::string> read_standard_input() {
  std::string text;
  constexpr size_t kStep = 64 << 10;
  while (text.size() <= kMaxYamlBytes) {
    const size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t count = ::read(STDIN_FILENO, text.data() + before, kStep);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) return base::system_error("cannot read standard input", errno);
  }
  return text;
}

Result<job::JobSpec> read_spec_file(const std::string& file, const std::string& name,
                                    const std::vector<std::string>& settings, const Hooks& hooks) {
  const bool is_input = file == "-";
  auto text = is_input ? read_standard_input() : base::read_file(file, kMaxYamlBytes);
  if (!text) {
    base::Error error = std::move(text).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would say that a job is missing
    return error;
  }
  MUSTER_TRY(const Caller caller, this_caller(hooks.context));
  return parse_spec_file(*text, is_input ? "standard input" : file, default_spec(caller),
                         {.name = name, .settings = settings});
}

/// An unknown project that nobody typed is told with where it came from.
base::Error with_origin_of_project(base::Error error, const job::JobSpec& spec,
                                   const Hooks& hooks) {
  const auto caller = this_caller(hooks.context);
  const bool is_in_use = caller && !caller->project.empty() && caller->project == spec.project;
  if (error.code != base::ErrorCode::kNotFound || !is_in_use) return error;
  error.what += ", which is the one in use";
  error.advice += error.advice.empty() ? "" : "; ";
  error.advice += "'muster project use' and MUSTER_PROJECT choose another";
  return error;
}

Result<job::Job> submit_job(Connection& connection, const job::JobSpec& spec,
                            const std::string& key, const Hooks& hooks) {
  auto job = connection.call([&](api::Client& client) { return client.submit(spec, key); });
  if (job) return job;
  return with_origin_of_project(std::move(job).error(), spec, hooks);
}

/// Sends the files that the job is to work in, where it brings some.
Result<void> send_files(const std::optional<WorkspaceWish>& wish, job::JobSpec& spec,
                        const Hooks& hooks) {
  if (!wish) return {};
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const SentWorkspace sent, send_workspace(connection, spec.project, *wish));
  work_in(sent.tree, spec);
  if (!sent.commit.empty()) spec.annotations["muster/commit"] = sent.commit;
  return {};
}

void show_detached(const std::string& name) {
  // The terminal has just shown "^C".
  if (terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
  std::cerr << "muster: detached; job '" << name << "' goes on\n"
            << "  to follow it again: muster logs -f " << name << "\n"
            << "  to stop it: muster stop " << name << std::endl;
}

/// Says on standard error how it went, and gives the exit code.
int report(const FollowEnd& end, const std::string& name, OnInterrupt meaning) {
  if (end.how == FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == FollowEnd::How::kInterrupted) {
    show_detached(name);
    return kExitInterrupted;
  }
  const std::string text = failure_text(end.job) + job_row(end.job, base::SystemClock().now());
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  const bool stopped_here = meaning == OnInterrupt::kStop && end.stop_asked;
  if (stopped_here && end.job.phase == job::Phase::kStopped) return kExitInterrupted;
  return exit_code_of(end.job);
}

Result<int> submit_and_follow(const job::JobSpec& spec, const std::string& key, LogLook look,
                              OnInterrupt meaning, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // From before the submit, so that no Ctrl-C falls between it and the follow.
  Interrupts interrupts;
  MUSTER_TRY(const job::Job job, submit_job(connection, spec, key, hooks));
  connection.set_project(job.spec.project);
  const FollowRequest request{
      .name = job.spec.name, .query = {.follow = true}, .look = look, .on_interrupt = meaning};
  MUSTER_TRY(const FollowEnd end, follow(connection, interrupts, request));
  return report(end, request.name, meaning);
}

/// What would become of the job. That it could never run is the server's refusal, with its code.
Result<int> show_forecast(const job::JobSpec& spec, Output output, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  auto forecast = connection.call([&](api::Client& client) { return client.forecast(spec); });
  if (!forecast) return with_origin_of_project(std::move(forecast).error(), spec, hooks);
  MUSTER_CHECK(show(output, forecast_page(spec, *forecast, base::SystemClock().now()),
                    api::forecast_to_json(*forecast)));
  return kExitDone;
}

Hooks with_engine(Hooks hooks, const std::string& engine) {
  hooks.engine = engine;
  return hooks;
}

/// What whoever submitted it will want to do, but for its name.
std::string next_step(const job::Job& job) {
  if (job.suspended) return "start it: muster resume ";
  if (job.spec.terminal) return "sit before it: muster attach ";
  const bool is_interactive = job.spec.scheduling.purpose == job::Purpose::kBuild;
  return is_interactive ? "open a shell in it: muster bash " : "follow it: muster logs -f ";
}

}  // namespace

Result<int> execute(const SubmitCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  job::JobSpec spec = command.spec;
  if (command.file) {
    MUSTER_TRY(spec, read_spec_file(*command.file, command.name, command.settings, hooks));
  }
  if (command.dry_run) return show_forecast(spec, command.output, hooks);
  MUSTER_CHECK(send_files(command.workspace, spec, hooks));
  if (command.follow) {
    return submit_and_follow(spec, command.idempotency_key, command.look, OnInterrupt::kDetach,
                             hooks);
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::Job job, submit_job(connection, spec, command.idempotency_key, hooks));
  MUSTER_CHECK(show(command.output, "submitted " + job.spec.name + "\n", api::job_to_json(job)));
  if (command.output == Output::kTable) {
    std::cerr << "  to " << next_step(job) << job.spec.name << std::endl;
  }
  return kExitDone;
}

Result<int> execute(const RunCommand& command, const Hooks& given) {
  const Hooks hooks = with_engine(given, command.engine);
  job::JobSpec spec = command.spec;
  MUSTER_CHECK(send_files(command.workspace, spec, hooks));
  return submit_and_follow(spec, command.idempotency_key, command.look, OnInterrupt::kStop, hooks);
}

Result<int> execute(const LogsCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  Interrupts interrupts;
  const FollowRequest request{.name = command.name, .query = command.query, .look = command.look};
  MUSTER_TRY(const FollowEnd end, follow(connection, interrupts, request));
  if (end.how == FollowEnd::How::kEnded && !command.query.follow) return kExitDone;
  const int code = report(end, command.name, OnInterrupt::kDetach);
  // The logs were shown, and that was the question; how the job fared is in the row.
  return end.how == FollowEnd::How::kEnded ? kExitDone : code;
}

}  // namespace muster::cli
