#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/connection/server_start.h"
#include "cli/server/server.h"
#include "config/server_keys.h"

namespace muster::cli::server {

using job::Diagnosis;
using job::Finding;
using Verdict = job::Finding::Verdict;

namespace {

constexpr size_t kVerdictWidth = 7;  // "lacks" and two blanks

const char* verdict_colour(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "\x1b[32m";
    case Verdict::kNote:
      return "\x1b[2m";
    case Verdict::kLacks:
      return "\x1b[33m";
    case Verdict::kFails:
      return "\x1b[1;31m";
  }
  return "";
}

/// The coloured word before a finding. The colour repeats the meaning of the word.
std::string word_of(Verdict verdict) {
  return verdict == Verdict::kFine ? "ok" : to_string(verdict);
}

std::string dressed(const std::string& text, const char* with, bool colour) {
  return colour ? with + text + kNoColour : text;
}

std::string padded(const std::string& text, size_t width) {
  const size_t shown = display_width(text);
  return text + std::string(shown < width ? width - shown : 0, ' ');
}

std::string page_of(const Diagnosis& diagnosis, bool is_chosen, bool colour) {
  const bool runs = can_run(diagnosis);
  std::string text = diagnosis.engine + (is_chosen ? " (chosen)" : "") + ": " +
                     dressed(runs ? "can run jobs" : "cannot run jobs",
                             verdict_colour(runs ? Verdict::kFine : Verdict::kFails), colour) +
                     "\n";
  size_t width = 0;
  for (const Finding& finding : diagnosis.findings) {
    width = std::max(width, display_width(finding.subject));
  }
  for (const Finding& finding : diagnosis.findings) {
    const std::string word = padded(word_of(finding.verdict), kVerdictWidth);
    text += "  " + dressed(word, verdict_colour(finding.verdict), colour) +
            padded(finding.subject, width + 2) + finding.text + "\n";
    if (finding.advice.empty()) continue;
    text += std::string(2 + kVerdictWidth + width + 2, ' ') + "-> " + finding.advice + "\n";
  }
  return text;
}

}  // namespace

std::string doctor_page(const std::vector<Diagnosis>& diagnoses, const std::string& chosen,
                        bool colour) {
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) {
    text += (text.empty() ? "" : "\n") + page_of(diagnosis, diagnosis.engine == chosen, colour);
  }
  return text;
}

std::string doctor_json(const std::vector<Diagnosis>& diagnoses, const std::string& chosen,
                        const std::string& version) {
  using nlohmann::ordered_json;
  ordered_json engines = ordered_json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    ordered_json findings = ordered_json::array();
    for (const Finding& finding : diagnosis.findings) {
      findings.push_back({{"subject", finding.subject},
                          {"verdict", to_string(finding.verdict)},
                          {"text", finding.text},
                          {"advice", finding.advice}});
    }
    engines.push_back({{"engine", diagnosis.engine},
                       {"can_run", can_run(diagnosis)},
                       {"findings", std::move(findings)}});
  }
  const ordered_json json{
      {"version", version}, {"chosen", chosen}, {"engines", std::move(engines)}};
  return base::json_text(json);
}

bool is_well(const std::vector<Diagnosis>& diagnoses, const std::string& chosen) {
  return std::any_of(diagnoses.begin(), diagnoses.end(), [&](const Diagnosis& diagnosis) {
    return diagnosis.engine == chosen && can_run(diagnosis);
  });
}

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
                  .help = "configuration file of the server to check",
                  .offer = Offer::kFiles}};
  for (const config::ServerKey& key : config::server_keys()) {
    if (key.name == "engine" || key.name == "state_dir") flags.push_back(flag_of(key));
  }
  return {
      .name = "doctor",
      .help =
          "check what each engine needs on this machine, what is missing, and how to install it",
      .read = read_doctor,
      .flags = flags + output_flag(),
      .example = "muster doctor --engine slurm"};
}

namespace {

/// While engines are checked, shows a message on a terminal; removes it at the end.
class Waiting {
 public:
  explicit Waiting(const std::vector<std::string>& engines)
      : is_shown_(terminal_of(STDERR_FILENO).is_terminal) {
    if (!is_shown_) return;
    std::cerr << "checking";
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

/// Whether a server uses the state folder. A server that does not answer does not count.
bool server_runs(const config::Paths& paths) {
  const auto answers = server_answers(paths);
  return answers && *answers;
}

/// Makes the output of programs and servers safe for a terminal.
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

/// Bypasses show(), which would escape the colours.
Result<void> show_page(const std::vector<job::Diagnosis>& found, const std::string& chosen) {
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  return base::write_all(STDOUT_FILENO, doctor_page(found, chosen, colour));
}

}  // namespace

Result<int> execute(const DoctorCommand& command, const Hooks& hooks) {
  const config::ServerSource source = config::with_usual_file(command.source);
  DoctorInput input{.engines = {"process", "container", "slurm", "kubernetes"}};
  MUSTER_TRY(input.options, config::read_server_options(source));
  const std::string chosen = input.options.engine;
  if (command.only_chosen) input.engines = {chosen};
  MUSTER_TRY(const config::Paths paths, config::paths_here(input.options.state_folder));
  input.jobs_folder = input.options.jobs_folder.value_or(paths.state_folder / "jobs");
  input.server_runs = server_runs(paths);

  std::vector<job::Diagnosis> found;
  {
    const Waiting waiting(input.engines);
    found = hooks.examine(input);
  }
  if (command.output == Output::kTable) {
    MUSTER_CHECK(show_page(harmless(found), chosen));
  } else {
    MUSTER_CHECK(show(command.output, "", doctor_json(found, chosen, hooks.version)));
  }
  return is_well(found, chosen) ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::server
