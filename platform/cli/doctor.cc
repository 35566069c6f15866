// doctor: what each engine finds on this machine, what is missing, and how to get it.
#include <unistd.h>

#include <iostream>

#include "base/files.h"
#include "cli/command_parts.h"
#include "cli/commands.h"
#include "cli/doctor_view.h"
#include "cli/report.h"
#include "cli/server.h"
#include "cli/server_flags.h"
#include "cli/server_keys.h"
#include "cli/server_start.h"
#include "cli/terminal.h"

namespace muster::cli {

namespace {

Call read_doctor(Reading& in) {
  DoctorCommand command{.source = read_server_source(in.caller, in.reader),
                        .only_chosen = in.reader.has("--engine"),
                        .output = in.output()};
  read_server_flags(command.source, in.reader);
  return command;
}

}  // namespace

Command doctor_command() {
  Flags flags = {{.name = "--config",
                  .value = "FILE",
                  .help = "the configuration of the server that would run here",
                  .offer = Offer::kFiles}};
  for (const ServerKey& key : server_keys()) {
    if (key.name == "engine" || key.name == "state_dir") flags.push_back(flag_of(key));
  }
  return {.name = "doctor",
          .help = "what engines find on this machine, what is missing, and how to get it",
          .read = read_doctor,
          .flags = flags + output_flag(),
          .example = "muster doctor --engine slurm"};
}

namespace {

/// Says on a terminal what takes the seconds, and takes it away again.
class Waiting {
 public:
  explicit Waiting(const std::vector<std::string>& engines)
      : is_shown_(terminal_of(STDERR_FILENO).is_terminal) {
    if (!is_shown_) return;
    std::cerr << "looking at";
    for (const std::string& engine : engines) std::cerr << " " << engine;
    std::cerr << " ..." << std::flush;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (is_shown_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  bool is_shown_;
};

/// Whether a server uses the state folder. One that does not answer is none, for this.
bool server_runs(const Paths& paths) {
  const auto answers = server_answers(paths);
  return answers && *answers;
}

/// What programs and servers said, without what would move a terminal's cursor.
std::vector<job::Diagnosis> harmless(std::vector<job::Diagnosis> found) {
  for (job::Diagnosis& diagnosis : found) {
    for (job::Finding& finding : diagnosis.findings) {
      for (std::string* text : {&finding.subject, &finding.text, &finding.advice}) {
        *text = safe_lines(*text);
      }
    }
  }
  return found;
}

/// Raw: show() would take the colours away.
Result<void> show_page(const std::vector<job::Diagnosis>& found, const std::string& chosen) {
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  return base::write_all(STDOUT_FILENO, doctor_page(found, chosen, colour));
}

}  // namespace

Result<int> execute(const DoctorCommand& command, const Hooks& hooks) {
  const ServerSource source = with_usual_file(command.source);
  DoctorWish wish{.engines = {"process", "container", "slurm"}};
  MUSTER_TRY(wish.options, read_server_options(source));
  const std::string chosen = wish.options.engine;
  if (command.only_chosen) wish.engines = {chosen};
  MUSTER_TRY(const Paths paths, paths_here(wish.options.state_folder));
  wish.jobs_folder = wish.options.jobs_folder.value_or(paths.state_folder / "jobs");
  wish.server_runs = server_runs(paths);

  std::vector<job::Diagnosis> found;
  {
    const Waiting waiting(wish.engines);
    found = hooks.examine(wish);
  }
  if (command.output == Output::kTable) {
    MUSTER_CHECK(show_page(harmless(found), chosen));
  } else {
    MUSTER_CHECK(show(command.output, "", doctor_json(found, chosen, hooks.version)));
  }
  return is_well(found, chosen) ? kExitDone : kExitFailed;
}

}  // namespace muster::cli
